"""What updates to later releases, a change of answers and a recopy do to a project that is its owner's."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import copier
import pytest
import yaml
from answers import HOSTILE, PAIRS, QUESTIONS
from future import AFTER_NEXT, FEATURE, NEXT, RETIRED, release_after_next, release_feature, release_next
from projects import git, package, run
from releases import RELEASES, VERSION, contents, of_the_template, recorded
from researcher import append, commit, edit, live_a_month, live_with

FEATURE_FILES = {"docs/greetings.md", "src/{}/commands/greet.py", "src/{}/engine/greetings/__init__.py"}
FAR = {**HOSTILE, "package_name": "z9", "logger": "mlflow", "ci": "none", "features": []}


def update(project: Path, vcs_ref: str | None = None, context_lines: int = 3, **data: Any) -> None:
    options = {"vcs_ref": vcs_ref, "context_lines": context_lines, "defaults": True, "overwrite": True}
    copier.run_update(project, data=data, unsafe=False, quiet=True, **options)
    assert "UU" not in git(project, "status", "--porcelain")
    commit(project, "Update")


@pytest.fixture(params=[{}, FAR], ids=["default", "far"])
def owned(own_template: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A project in Git, made from a template that the test may go on with."""
    folder = tmp_path / "project"
    copier.run_copy(str(own_template), folder, data=request.param, defaults=True, unsafe=False, quiet=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "Start")
    return folder


def test_a_feature_that_arrives_is_absent_until_it_is_ticked(own_template: Path, owned: Path, tmp_path: Path) -> None:
    ours = live_with(owned)
    before = contents(owned)
    release_feature(own_template)

    update(owned)
    after = contents(owned)
    assert {name for name in after if after[name] != before.get(name)} == {".copier-answers.yml"}
    assert set(after) == set(before)

    update(owned, features=[*recorded(owned)["features"], "greetings"])
    ticked = contents(owned)
    files = {name.format(package(owned)) for name in FEATURE_FILES}
    assert set(ticked) - set(before) == files
    ours.assert_kept()
    assert 'greetings = [\n    "cowsay",\n]' in ticked["pyproject.toml"].decode()
    assert b"greeting: hello" in ticked[f"src/{package(owned)}/configs/features.yaml"]

    update(owned)
    assert contents(owned) == ticked

    fresh = tmp_path / "fresh"
    copier.run_copy(str(own_template), fresh, data=recorded(owned), defaults=True, unsafe=False, quiet=True)
    expected = contents(fresh)
    assert {name for name in expected if expected[name] != ticked.get(name)} <= ours.edited | set(ours.whole)


def test_recopy_keeps_what_is_the_owners(owned: Path) -> None:
    ours = live_with(owned)
    edit(owned / "constraints.txt", "torch==", "torch===")
    commit(owned, "A fault in a file of the template")
    copier.run_recopy(owned, defaults=True, overwrite=True, unsafe=False, quiet=True)
    assert {name: contents(owned)[name] for name in ours.whole} == ours.whole
    assert "torch===" not in (owned / "constraints.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def future(template: Path, once: Callable[..., Path]) -> Path:
    """A clone with two releases after this version."""

    def make(folder: Path) -> None:
        run(["git", "clone", "--quiet", template, folder])
        release_next(folder)
        release_after_next(folder)

    return once("future", make)


@pytest.fixture
def start(future: Path, once: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """A committed project of a version of that clone, rendered once a session."""

    def started(version: str, kind: str, answers: dict[str, Any], name: str = "project") -> Path:
        def make(folder: Path) -> None:
            source, options = str(future), {"defaults": True, "unsafe": False, "quiet": True}
            copier.run_copy(source, folder, data=answers, vcs_ref=version, **options)

        folder = tmp_path / name
        shutil.copytree(once(f"future-{version}-{kind}", make), folder)
        git(folder, "init", "--quiet", "--initial-branch=main")
        commit(folder, "Start")
        return folder

    return started


@pytest.mark.parametrize(("kind", "answers"), [("default", {}), ("far", FAR)])
def test_one_release_after_another_is_the_same_as_both_at_once(
    start: Callable[..., Path], kind: str, answers: dict[str, Any]
) -> None:
    """And both are what a new project would be; the owner's rooms stay without the template's new files."""
    at_once, in_steps = (start(VERSION, kind, answers, name) for name in ("at_once", "in_steps"))
    before = contents(at_once)
    update(at_once)
    update(in_steps, vcs_ref=NEXT)
    assert f"src/{package(in_steps)}/engine/later.py" in contents(in_steps)
    update(in_steps)
    found = contents(at_once)
    assert contents(in_steps) == found

    renamed = {"features": ["renamed" if choice == FEATURE else choice for choice in recorded_features(before)]}
    assert recorded(at_once)["features"] == renamed["features"]
    assert recorded(at_once)["tooling"] == answers.get("environment", "pip")
    assert "environment" not in recorded(at_once)
    fresh = contents(start(AFTER_NEXT, kind, {**answers, **renamed}, "fresh"))
    retired = {RETIRED: before[RETIRED]}
    assert of_the_template(found) == of_the_template(fresh) | retired
    assert f"src/{package(at_once)}/models/later.py" in fresh
    assert set(found) - set(of_the_template(found)) == set(before) - set(of_the_template(before))


def recorded_features(files: dict[str, bytes]) -> list[str]:
    return yaml.safe_load(files[".copier-answers.yml"])["features"]


@pytest.mark.parametrize("context", [3, 1000])
def test_work_survives_what_two_releases_change(start: Callable[..., Path], tmp_path: Path, context: int) -> None:
    """Lines of both sides meet in every shared file; a retired file that its owner edited stays."""
    answers = {"package_name": "cells"}
    project = start(VERSION, "cells", answers)
    append(project / RETIRED, "# ours\n")
    owned = live_a_month(project, tmp_path / "scratch")
    owned.whole[RETIRED] = (project / RETIRED).read_bytes()
    update(project, context_lines=context)
    owned.assert_kept()
    found = contents(project)
    for name, text in {
        "src/cells/engine/errors.py": "# Another fix.\n",
        "src/cells/engine/splits.py": "# A fix.\n",  # which the owner edited as well
        "src/cells/engine/later.py": "Later",
        "src/cells/configs/optimizer/later.yaml": "NAdam",
        "src/cells/configs/train.yaml": "later: null\n",
        "pyproject.toml": '    "cowsay",\n    # Add your own dependencies below this line.\n    "pandas",\n',
        "Makefile": "later: ## something new\n",
        ".gitignore": "/later\n",
        ".pre-commit-config.yaml": "id: later",
    }.items():
        assert text in found[name].decode(), name
    assert "scheduler: onecycle" in found["src/cells/configs/train.yaml"].decode()
    fresh = of_the_template(contents(start(AFTER_NEXT, "cells-fresh", answers, "fresh")))
    assert {name for name in fresh if found.get(name) != fresh[name]} <= owned.edited


def test_answers_change_one_after_another_and_back(render: Callable[..., Path], project: Callable[..., Path]) -> None:
    """Through every value of every question; each time the project is what a new one would be."""
    folder = project(package_name="z9")
    original = contents(folder)
    start = recorded(folder)
    unseen = {
        (name, str(row[name])) for row in PAIRS for name in QUESTIONS if "choices" in QUESTIONS[name] and name in row
    }
    rows = []
    for row in PAIRS:  # the few rows that hold every value once
        new = {(name, str(value)) for name, value in row.items()} & unseen
        if len(new) >= min(2, len(unseen)) and unseen:
            rows.append({**start, **row, "package_name": "z9"})
            unseen -= new
    assert not unseen
    for row in [*rows, start]:
        update(folder, **row)
        assert recorded(folder) == row
        assert of_the_template(contents(folder)) == of_the_template(contents(render(**row)))
    assert contents(folder) == original


@pytest.mark.parametrize("version", [*RELEASES, VERSION])
def test_without_tags_a_project_follows_the_newest_commit(own_template: Path, tmp_path: Path, version: str) -> None:
    """Through the command line, as people do it, and without --trust; from old commits as well."""
    commit_of = git(own_template, "rev-parse", version).strip()
    git(own_template, "tag", "--delete", *git(own_template, "tag").split())
    copier_command = [sys.executable, "-m", "copier"]
    folder = tmp_path / "project"
    run([*copier_command, "copy", "--defaults", "--vcs-ref", commit_of, own_template, folder])
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "Start")
    append(own_template / "template/docs/tour.md.jinja", "\nA fix.\n")
    commit(own_template, "A fix")
    newer = run([*copier_command, "check-update"], folder)
    assert "New template version available" in newer.stdout
    run([*copier_command, "update", "--defaults"], folder)
    assert (folder / "docs/tour.md").read_text(encoding="utf-8").endswith("\nA fix.\n")
    assert "UU" not in git(folder, "status", "--porcelain")


def test_two_renders_are_the_same_bytes(template: Path, tmp_path: Path) -> None:
    """Under another directory name, time zone and language."""
    folders = [tmp_path / "a", tmp_path / "Ordner mit Ü"]
    surroundings = [
        {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "LANG": "C"},
        {"TZ": "America/Los_Angeles", "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "PYTHONHASHSEED": "1"},
    ]
    for folder, environment in zip(folders, surroundings, strict=True):
        data = [word for name, text in HOSTILE.items() for word in ("-d", f"{name}={text}")]
        run(
            [sys.executable, "-m", "copier", "copy", "--quiet", "--defaults", *data, template, folder],
            env={**os.environ, **environment},
        )
    first, second = map(contents, folders)
    assert first == second
    assert len(first) > 50
