"""What can be said of the template without rendering it."""

import importlib.metadata
import keyword
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import copier
import pytest
import yaml
from answers import QUESTIONS, ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from projects import git, run

COPIER: dict[str, Any] = yaml.safe_load((ROOT / "copier.yml").read_text(encoding="utf-8"))
CONSTRAINTS = [
    Requirement(line)
    for line in (ROOT / "template/constraints.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
PINS = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in CONSTRAINTS}
NAME = re.compile(r"[a-z](_?[a-z0-9])*")


def test_nothing_in_the_template_needs_trust() -> None:
    assert not {"_tasks", "_migrations", "_jinja_extensions", "_external_data", "_secret_questions"} & set(COPIER)
    assert not [name for name, question in QUESTIONS.items() if question.get("secret")]


def test_at_most_ten_questions_are_asked_and_each_helps() -> None:
    assert len(QUESTIONS) <= 10
    for name, question in QUESTIONS.items():
        assert question.get("help"), name
        assert "default" in question, name
        assert "choices" in question or "validator" in question, name


def test_file_names_are_portable(template: Path) -> None:
    paths = git(template, "ls-files", "-z").split("\0")[:-1]
    assert len({path.lower() for path in paths}) == len(paths)
    for path in paths:
        assert len(path) < 160, path
        for part in path.split("/"):
            assert not re.search(r'[<>:"|?*\\\x00-\x1f]|[ .]\Z', part), path
            assert part.split(".")[0].lower() not in {"con", "prn", "aux", "nul"}, path


def test_the_template_holds_no_links_or_binaries(template: Path) -> None:
    modes = {line.split()[0] for line in git(template, "ls-files", "--stage", "template").splitlines()}
    assert modes <= {"100644"}
    for path in (template / "template").rglob("*"):
        assert path.is_dir() or b"\0" not in path.read_bytes(), path


def test_git_ignores_no_file_of_the_template() -> None:
    files = [str(path.relative_to(ROOT)) for path in (ROOT / "template").rglob("*") if path.is_file()]
    files = [name for name in files if "__pycache__" not in name and "_cache/" not in name]
    assert run(["git", "check-ignore", "--no-index", *files], cwd=ROOT, check=False).stdout == ""


def test_free_text_stays_out_of_python_files() -> None:
    for path in (ROOT / "template").rglob("*.py.jinja"):
        expressions = re.findall(r"\{[{%].*?[%}]\}", path.read_text(encoding="utf-8"))
        assert not re.search(r"project_name|description|user_name|user_email", " ".join(expressions)), path


def test_paths_of_the_owner_are_left_alone_twice() -> None:
    (exclude,) = (entry for entry in COPIER["_exclude"] if "_copier_operation" in entry)
    condition = exclude.partition("{% if _copier_operation == 'update' %}")[2].partition("{% endif %}")[0]
    assert condition.split() == COPIER["_skip_if_exists"]


def test_names_that_something_else_owns_are_reserved() -> None:
    modules = set(sys.stdlib_module_names) | set(importlib.metadata.packages_distributions())
    projects = {name.replace("-", "_") for name in PINS}
    owned = {*modules, *projects, *keyword.kwlist, *keyword.softkwlist}
    reserved = set(COPIER["reserved"]["default"])
    installed_by_hand = {"mypy", "mypyc"}
    assert {name for name in map(str.lower, owned) if NAME.fullmatch(name)} - reserved - installed_by_hand == set()
    assert {"yes", "null", "test", "src", "pip", "torchrun"} <= reserved


def test_constraints_are_exact_and_without_local_versions() -> None:
    for pin in CONSTRAINTS:
        assert re.fullmatch(r"==[^,+*]+", str(pin.specifier)), pin
    names = [canonicalize_name(pin.name) for pin in CONSTRAINTS]
    assert names == sorted(set(names))


@pytest.fixture(scope="session")
def declared(render: Callable[..., Path]) -> list[Requirement]:
    """Every dependency and extra of a project that logs to MLflow, which has all of them."""
    text = (render(logger="mlflow") / "pyproject.toml").read_text(encoding="utf-8")
    metadata = tomllib.loads(text)["project"]
    extras = metadata["optional-dependencies"].values()
    return [Requirement(line) for line in (*metadata["dependencies"], *(line for extra in extras for line in extra))]


def test_the_tested_versions_satisfy_what_a_project_declares(declared: list[Requirement]) -> None:
    for requirement in declared:
        assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)]), requirement


def test_the_workshop_installs_what_a_project_declares(declared: list[Requirement]) -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    assert set(groups["project"]) == {requirement.name for requirement in declared}


def test_everything_that_is_installed_is_pinned() -> None:
    missing: set[str] = set()
    for name in PINS:
        try:
            requirements = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # another platform's or another Python's
        for requirement in map(Requirement, requirements):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                missing |= {canonicalize_name(requirement.name)} - set(PINS)
    assert {name for name in missing if not name.startswith(("nvidia-", "cuda-", "triton"))} == set()


@pytest.mark.parametrize(
    "project_name",
    [
        "図像",
        "--",
        "3D nets",
        "class",
        "a" * 80,
        "Torch!",
        "  My  ",
        "x_",
        "é",
        "OpenTelemetry exporter otlp proto http",
    ],
)
def test_the_default_package_name_is_always_valid(tmp_path: Path, project_name: str) -> None:
    """The questions alone: nothing is rendered but the answers."""
    questions, project = tmp_path / "questions", tmp_path / "project"
    (questions / "template").mkdir(parents=True)
    answers_file = "{{ _copier_conf.answers_file }}.jinja"
    shutil.copy(ROOT / "copier.yml", questions)
    shutil.copy(ROOT / "template" / answers_file, questions / "template")
    copier.run_copy(
        str(questions), project, data={"project_name": project_name}, defaults=True, unsafe=False, quiet=True
    )
    found = yaml.safe_load((project / ".copier-answers.yml").read_text(encoding="utf-8"))["package_name"]
    assert NAME.fullmatch(found)
    assert len(found) <= 30
    assert found not in COPIER["reserved"]["default"]
