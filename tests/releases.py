"""The releases that projects come from, and which of their paths belong to whom."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from answers import HOSTILE, ROOT
from pathspec import GitIgnoreSpec
from projects import git, run

VERSION = "v999.0.0"  # this one
RELEASES: dict[str, str] = tomllib.loads((ROOT / "tests/releases.toml").read_text(encoding="utf-8"))
OWNERS = GitIgnoreSpec.from_lines(yaml.safe_load((ROOT / "copier.yml").read_text(encoding="utf-8"))["_skip_if_exists"])


def tag_releases(clone: Path) -> None:
    """Main carries no tags: a release is a line in `tests/releases.toml`, which becomes one here."""
    for version, commit in RELEASES.items():
        if why_absent(clone, version) is None:
            git(clone, "tag", "--force", version, commit)


def why_absent(clone: Path, version: str) -> str | None:
    """Why a release cannot be rendered from this clone; None where it can."""
    commit = RELEASES[version]
    if run(["git", "merge-base", "--is-ancestor", commit, "HEAD"], clone, check=False).returncode == 0:
        return None
    if git(clone, "rev-parse", "--is-shallow-repository").strip() == "true" or (clone / ".git/shallow").exists():
        return f"{version} is not in this shallow clone: type git fetch --unshallow"
    return f"tests/releases.toml says that {version} is {commit}, which is no ancestor of HEAD"


@cache
def questions(clone: Path, version: str) -> dict[str, dict[str, Any]]:
    """What a release asks."""
    text: dict[str, Any] = yaml.safe_load(git(clone, "show", f"{version}:copier.yml"))
    return {name: question for name, question in text.items() if not name.startswith("_") and question.get("help")}


def far_answers(clone: Path, version: str) -> dict[str, Any]:
    """Answers to a release as far from the defaults as possible."""
    answers: dict[str, Any] = {}
    for name, question in questions(clone, version).items():
        if question.get("multiselect"):
            answers[name] = []
        elif "choices" in question:
            answers[name] = [value for value in question["choices"].values() if value != question["default"]][-1]
    return {**HOSTILE, "package_name": "z9", **answers, "environment": "conda", "ci": "gitlab"}


def contents(folder: Path) -> dict[str, bytes]:
    """All rendered files, by path."""
    paths = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def of_the_template(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files that an update keeps current: all but the owner's rooms."""
    return {name: content for name, content in files.items() if not OWNERS.match_file(name)}


def recorded(project: Path) -> dict[str, Any]:
    """The answers that a project was made with."""
    answers = yaml.safe_load((project / ".copier-answers.yml").read_text(encoding="utf-8"))
    return {name: value for name, value in answers.items() if not name.startswith("_")}
