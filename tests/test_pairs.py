"""Every pair of answers renders a project that is whole, clean, up to date, and trains."""

import json
import re
import sys
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import copier
import pytest
import yaml
from answers import PAIRS, QUESTIONS, ROOT
from projects import git, package, python, run, text_files

pytestmark = pytest.mark.parametrize(
    "answers",
    [
        pytest.param(answers, id="-".join(str(answers[name]) for name in QUESTIONS if "choices" in QUESTIONS[name]))
        for answers in PAIRS
    ],
)
LEFT_OVER = re.compile(
    r"\{\{-?\s*(_copier|" + "|".join(QUESTIONS) + r")|\{%-?\s*(if|elif|else|endif|for|set|from|import|macro|block)\b"
)
MARKERS = re.compile(r"^(<{7}|={7}|>{7}|\|{7})( |$)", re.MULTILINE)


def test_files_are_whole(project: Callable[..., Path], answers: dict[str, Any]) -> None:
    folder = project(**answers)
    files = text_files(folder)
    rendered = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {name for name in rendered if not name.startswith(".git/")} == set(files), "Git ignores a rendered file"
    for name, text in files.items():
        assert "\r" not in text, name
        assert text == "" or re.search(r"[^\n]\n\Z", text), f"{name} does not end with one line break"
        assert not re.search(r"[ \t]$", text, re.MULTILINE), f"{name} has blanks at the end of a line"
        assert not LEFT_OVER.search(text), name
        assert not MARKERS.search(text), name
        assert str(folder.parent) not in text, name
        parse(name, text)


def parse(name: str, text: str) -> None:
    """Reads a file in its own language; warnings of Python's parser are errors."""
    match Path(name).suffix:
        case ".py":
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                compile(text, name, "exec")
        case ".toml":
            tomllib.loads(text)
        case ".yml" | ".yaml":
            yaml.safe_load(text)
        case ".json":
            json.loads(text)


def test_an_update_to_the_same_version_changes_nothing(project: Callable[..., Path], answers: dict[str, Any]) -> None:
    folder = project(**answers)
    copier.run_update(folder, defaults=True, overwrite=True, unsafe=False, quiet=True)
    assert git(folder, "status", "--porcelain") == ""


def test_tools_find_nothing(render: Callable[..., Path], answers: dict[str, Any]) -> None:
    folder = render(**answers)
    run(["ruff", "format", "--check", "--no-cache", "."], folder)
    run(["ruff", "check", "--no-cache", "."], folder)
    run(["pyrefly", "check", "--summary=none", "--python-interpreter-path", sys.executable], folder)
    run(["yamllint", "--strict", "--config-file", ROOT / ".yamllint.yaml", "."], folder)


def test_it_trains(render: Callable[..., Path], tmp_path: Path, answers: dict[str, Any]) -> None:
    folder = render(**answers)
    python(folder, "-m", package(folder), "train", "debug=fast", cwd=tmp_path)
    (record,) = (json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.glob("runs/debug/*/run.json"))
    assert record["status"] == "finished"
    assert 0 <= record["metrics"]["test/accuracy"] <= 1
    logs = {"tensorboard": "tensorboard", "wandb": "wandb", "csv": "csv", "mlflow": "mlflow.db"}
    assert list(tmp_path.glob(f"runs/debug/*/{logs[answers['logger']]}")), "the chosen logger wrote nothing"
