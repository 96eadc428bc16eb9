"""What an update and a recopy do to a project that has become its owner's."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import copier
import pytest
import yaml
from answers import HOSTILE
from projects import git, package, run

FEATURE_FILES = {"docs/greetings.md", "src/{}/commands/greet.py", "src/{}/engine/greetings/__init__.py"}


def contents(folder: Path) -> dict[str, bytes]:
    """All rendered files."""
    paths = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", f"--message={message}")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


def update(project: Path, **data: object) -> None:
    copier.run_update(project, data=data, defaults=True, overwrite=True, unsafe=False, quiet=True)
    assert "UU" not in git(project, "status", "--porcelain")
    commit(project, "Update")


def add_feature(template: Path) -> None:
    """Releases a version with a feature, in the way that features are made."""
    choice = "    Sweeps and the report: sweeps\n"
    edit(template / "copier.yml", choice, f"{choice}    Greetings: greetings\n")
    edit(
        template / "copier.yml",
        "    {% if _copier_operation == 'update' %}\n",
        "    {% if features is defined and 'greetings' not in features %}\n"
        "    /src/*/commands/greet.py\n    /src/*/engine/greetings\n    /docs/greetings.md\n    {% endif %}\n"
        "    {% if _copier_operation == 'update' %}\n",
    )
    source = template / "template/src/{{ package_name }}"
    (source / "engine/greetings").mkdir()
    (source / "engine/greetings/__init__.py").write_text('"""Greetings."""\n', encoding="utf-8")
    (source / "commands/greet.py").write_text('"""Greet."""\n', encoding="utf-8")
    (template / "template/docs/greetings.md").write_text("# Greetings\n", encoding="utf-8")
    edit(
        template / "template/pyproject.toml.jinja",
        "# Add your own extras below this line.\n",
        "{% if 'greetings' in features %}\ngreetings = [\n    \"cowsay\",\n]\n{% endif %}\n"
        "# Add your own extras below this line.\n",
    )
    with (source / "configs/features.yaml.jinja").open("a", encoding="utf-8") as file:
        file.write("{% if 'greetings' in features %}\ngreeting: hello\n{% endif %}\n")
    commit(template, "A feature")
    git(template, "tag", "v1000.0.0")


def live_with(project: Path) -> dict[str, bytes]:
    """Edits what is the owner's and what is shared; returns the files that must stay as they are."""
    source = project / "src" / package(project)
    (project / "README.md").write_text("# Ours\n", encoding="utf-8")
    (source / "models/ours.py").write_text('"""Ours."""\n', encoding="utf-8")
    (source / "configs/experiment/ours.yaml").write_text("# @package _global_\nname: ours\n", encoding="utf-8")
    for path in (source / "data/digits.py", source / "models/classifier.py", source / "configs/model/resnet.yaml"):
        path.write_text(path.read_text(encoding="utf-8") + "# ours\n", encoding="utf-8")
    edit(
        project / "pyproject.toml",
        "    # Add your own dependencies below this line.\n",
        '    # Add your own dependencies below this line.\n    "pandas",\n',
    )
    edit(
        project / "pyproject.toml",
        "# Add your own extras below this line.\n",
        '# Add your own extras below this line.\nours = ["polars"]\n',
    )
    edit(
        project / "Makefile",
        "# Add your own targets below this line.\n",
        "# Add your own targets below this line.\nours:\n\techo ours\n",
    )
    commit(project, "Ours")
    rooms = ("README.md", f"src/{source.name}/data/", f"src/{source.name}/models/", f"src/{source.name}/configs/")
    return {
        name: content
        for name, content in contents(project).items()
        if name.startswith(rooms[:3]) or (name.startswith(rooms[3]) and b"ours" in content)
    }


@pytest.fixture(
    params=[{}, {**HOSTILE, "package_name": "z9", "logger": "mlflow", "ci": "none", "features": []}],
    ids=["default", "far"],
)
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
    add_feature(own_template)

    update(owned)
    after = contents(owned)
    assert {name for name in after if after[name] != before.get(name)} == {".copier-answers.yml"}
    assert set(after) == set(before)

    answers = yaml.safe_load((owned / ".copier-answers.yml").read_text(encoding="utf-8"))
    update(owned, features=[*answers["features"], "greetings"])
    ticked = contents(owned)
    files = {name.format(package(owned)) for name in FEATURE_FILES}
    assert set(ticked) - set(before) == files
    assert {name: ticked[name] for name in ours} == ours
    pyproject = ticked["pyproject.toml"].decode()
    assert 'greetings = [\n    "cowsay",\n]' in pyproject
    assert 'ours = ["polars"]' in pyproject
    assert '    "pandas",\n' in pyproject
    assert b"greeting: hello" in ticked[f"src/{package(owned)}/configs/features.yaml"]

    update(owned)
    assert contents(owned) == ticked

    answers = yaml.safe_load((owned / ".copier-answers.yml").read_text(encoding="utf-8"))
    data = {name: value for name, value in answers.items() if not name.startswith("_")}
    fresh = tmp_path / "fresh"
    copier.run_copy(str(own_template), fresh, data=data, defaults=True, unsafe=False, quiet=True)
    expected = contents(fresh)
    changed = {name for name in expected if expected[name] != ticked.get(name)}
    assert changed - set(ours) == {"pyproject.toml", "Makefile"}


def test_recopy_keeps_what_is_the_owners(owned: Path) -> None:
    ours = live_with(owned)
    edit(owned / "constraints.txt", "torch==", "torch===")
    commit(owned, "A fault in a file of the template")
    copier.run_recopy(owned, defaults=True, overwrite=True, unsafe=False, quiet=True)
    assert {name: contents(owned)[name] for name in ours} == ours
    assert "torch===" not in (owned / "constraints.txt").read_text(encoding="utf-8")


def test_a_fix_arrives_where_the_template_owns_and_not_where_the_owner_does(own_template: Path, owned: Path) -> None:
    ours = live_with(owned)
    source = own_template / "template/src/{{ package_name }}"
    for path in (source / "engine/errors.py", source / "models/classifier.py", source / "data/digits.py"):
        path.write_text(path.read_text(encoding="utf-8") + "# a fix\n", encoding="utf-8")
    commit(own_template, "A fix")
    git(own_template, "tag", "v1000.0.0")
    update(owned)
    found = contents(owned)
    assert {name: found[name] for name in ours} == ours
    assert found[f"src/{package(owned)}/engine/errors.py"].endswith(b"# a fix\n")


def test_without_tags_a_project_follows_the_newest_commit(own_template: Path, tmp_path: Path) -> None:
    """Through the command line, as people do it, and without --trust."""
    git(own_template, "tag", "--delete", "v999.0.0")
    copier_command = [sys.executable, "-m", "copier"]
    folder = tmp_path / "project"
    run([*copier_command, "copy", "--defaults", own_template, folder])
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "Start")
    with (own_template / "template/docs/tour.md.jinja").open("a", encoding="utf-8") as page:
        page.write("\nA fix.\n")
    commit(own_template, "A fix")
    run([*copier_command, "update", "--defaults"], folder)
    assert (folder / "docs/tour.md").read_text(encoding="utf-8").endswith("\nA fix.\n")


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


def test_an_update_is_a_plain_answer_away(project: Callable[..., Path]) -> None:
    """Changing the CI provider adds its file and removes the other one's."""
    folder = project()
    update(folder, ci="gitlab")
    assert (folder / ".gitlab-ci.yml").exists()
    assert not (folder / ".github").exists()
    update(folder, ci="github")
    assert not (folder / ".gitlab-ci.yml").exists()
    assert git(folder, "diff", "--stat", "HEAD~2") == ""
