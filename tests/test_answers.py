"""Impossible answers are refused with a reason; free text shows everywhere as it was typed."""

import importlib.metadata
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import copier
import pytest
import yaml
from answers import HOSTILE, shown
from markdown_it import MarkdownIt
from omegaconf import OmegaConf
from projects import Terminal, package, run

REFUSED = [
    ("project_name", "", "needs a name"),
    ("project_name", "   ", "needs a name"),
    ("package_name", "", "is no package name"),
    ("package_name", "2fast", "is no package name"),
    ("package_name", "my-pkg", "is no package name"),
    ("package_name", "Nets", "is no package name"),
    ("package_name", "naïve", "is no package name"),
    ("package_name", "class", "is taken by Python"),
    ("package_name", "json", "is taken by Python"),
    ("package_name", "torch", "is taken by Python"),
    ("package_name", "null", "is taken by Python"),
    ("package_name", "torchrun", "is taken by Python"),
    ("package_name", "a" * 31, "has 31 letters"),
    ("package_name", "nets_", "makes no command name"),
    ("package_name", "my__nets", "makes no command name"),
    ("description", " ", "need a description"),
    ("user_name", " ", "needs a name"),
    ("user_email", "", "is no mail address"),
    ("user_email", "jane", "is no mail address"),
    ("user_email", "jane@", "is no mail address"),
    ("user_email", "jane doe@example.com", "is no mail address"),
    ("user_email", "jané@example.com", "is no mail address"),
]
REFUSED_AS_DATA_ONLY = [  # a prompt takes no line breaks or control characters, and offers choices as a list
    ("package_name", "nets\n", "is no package name"),
    ("project_name", "a\nb", "control character or a line break"),
    ("project_name", "a\x1bb", "control character or a line break"),
    ("description", "a\x00b", "control character"),
    ("user_name", "a\u2028b", "control character or a line break"),
    ("user_email", "a@b\n", "is no mail address"),
    ("license", "GPL", "Invalid choice"),
    ("logger", "comet", "Invalid choice"),
    ("ci", "jenkins", "Invalid choice"),
    ("environment", "nix", "Invalid choice"),
]


@pytest.mark.parametrize(("question", "answer", "reason"), REFUSED + REFUSED_AS_DATA_ONLY)
def test_impossible_data_is_refused_with_a_reason(
    template: Path, tmp_path: Path, question: str, answer: str, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        copier.run_copy(
            str(template), tmp_path / "project", data={question: answer}, defaults=True, unsafe=False, quiet=True
        )
    assert not (tmp_path / "project").exists()


@pytest.fixture
def prompt(template: Path, tmp_path: Path) -> Iterator[Terminal]:
    with Terminal([sys.executable, "-m", "copier", "copy", template, tmp_path / "project"], tmp_path) as terminal:
        yield terminal


def test_impossible_answers_are_refused_at_the_prompt(prompt: Terminal) -> None:
    """Types every refused answer, waits for the reason, and goes on with an answer that is right."""
    right = {
        "project_name": "Cell Counter",
        "package_name": "cells",
        "description": "Counts cells",
        "user_name": "Jane",
        "user_email": "jane@example.com",
    }
    asked = {"project_name": "aspeoplewriteit", "package_name": "Thenametoimport", "description": "inonesentence"}
    for question, answer in right.items():
        prompt.wait_for(asked.get(question, "metadata"))
        for name, wrong, reason in REFUSED:
            if name == question:
                prompt.type(f"{Terminal.CLEAR}{wrong}\r{Terminal.REDRAW}")
                prompt.wait_for(reason.replace(" ", ""))
        prompt.type(f"{Terminal.CLEAR}{answer}\r")
    prompt.wait_for("licence")


@pytest.fixture(scope="module")
def hostile(render: Callable[..., Path]) -> Path:
    return render(**HOSTILE, environment="conda", license="BSD-3-Clause")


def test_free_text_in_toml(hostile: Path) -> None:
    metadata = tomllib.loads((hostile / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert metadata["description"] == shown(HOSTILE["description"])
    assert metadata["authors"] == [{"name": HOSTILE["user_name"], "email": HOSTILE["user_email"]}]


def test_free_text_in_the_answers_file(hostile: Path) -> None:
    answers = yaml.safe_load((hostile / ".copier-answers.yml").read_text(encoding="utf-8"))
    assert {name: answers[name] for name in HOSTILE} == HOSTILE


def test_free_text_in_markdown(hostile: Path) -> None:
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse((hostile / "README.md").read_text(encoding="utf-8"))
    blocks = [
        "".join(part.content for part in token.children or () if part.type in ("text", "text_special"))
        for token in tokens
        if token.type == "inline"
    ]
    assert blocks[0] == shown(HOSTILE["project_name"])
    assert blocks[1] == shown(HOSTILE["description"])
    assert [token.type for token in tokens[:6]] == [
        *("heading_open", "inline", "heading_close"),
        *("paragraph_open", "inline", "paragraph_close"),
    ]


@pytest.mark.parametrize("license", ["MIT", "BSD-3-Clause", "Apache-2.0", "proprietary"])
def test_free_text_in_the_licence(render: Callable[..., Path], license: str) -> None:
    text = (render(**HOSTILE, license=license) / "LICENSE").read_text(encoding="utf-8")
    assert HOSTILE["user_name"] in text
    assert not re.search(r"\b(19|20)\d\d\b", text.replace("January 2004", ""))


def test_free_text_for_hydra(own_template: Path, tmp_path: Path) -> None:
    """OmegaConf shows the text, and takes no `${` in it for an interpolation."""
    text = HOSTILE["project_name"] + r" \\${b} \${c} ${d:e}"
    page = own_template / "template/hydra.yaml.jinja"
    page.write_text(
        "{% from 'includes/escape.jinja' import hydra, yaml %}a: {{ hydra(t) }}\nb: {{ yaml(t) }}\n".replace(
            "t)", "project_name)"
        )
    )
    run(["git", "add", page], own_template)
    run(["git", "commit", "-qm", "page"], own_template)
    copier.run_copy(
        str(own_template),
        tmp_path / "p",
        data={"project_name": text},
        vcs_ref="HEAD",
        defaults=True,
        unsafe=False,
        quiet=True,
    )
    assert OmegaConf.load(tmp_path / "p/hydra.yaml").a == shown(text)
    assert yaml.safe_load((tmp_path / "p/hydra.yaml").read_text(encoding="utf-8"))["b"] == shown(text)


@pytest.mark.long
def test_free_text_in_a_wheel(hostile: Path, tmp_path: Path) -> None:
    shutil.copytree(hostile, tmp_path / "project")
    run(
        [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path, tmp_path / "project"],
        tmp_path,
    )
    (wheel,) = tmp_path.glob("*.whl")
    run([sys.executable, "-m", "zipfile", "-e", wheel, tmp_path / "wheel"])
    (information,) = (tmp_path / "wheel").glob("*.dist-info")
    metadata = importlib.metadata.PathDistribution(information).metadata
    assert metadata["Summary"] == shown(HOSTILE["description"])
    assert package(hostile).replace("_", "-") == metadata["Name"]
