"""Projects of every release in `tests/releases.toml`, updated to this version."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import copier
import pytest
from projects import git, run
from releases import RELEASES, contents, far_answers, of_the_template, recorded, tag_releases, why_absent
from researcher import commit, live_a_month

pytestmark = pytest.mark.parametrize("release", RELEASES)


@pytest.fixture
def project_of(render: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """A project as a release made it, committed."""

    def made(release: str, name: str = "project", **answers: Any) -> Path:
        folder = tmp_path / name
        shutil.copytree(render(release=release, **answers), folder)
        git(folder, "init", "--quiet", "--initial-branch=main")
        commit(folder, "Start")
        return folder

    return made


def update(project: Path, **options: Any) -> None:
    copier.run_update(project, defaults=True, overwrite=True, unsafe=False, quiet=True, **options)


@pytest.mark.parametrize("far", [False, True], ids=["default", "far"])
def test_an_updated_project_is_a_new_one(
    template: Path, render: Callable[..., Path], project_of: Callable[..., Path], release: str, far: bool
) -> None:
    answers = far_answers(template, release) if far else {}
    folder = project_of(release, **answers)
    before = contents(folder)
    update(folder)
    found = contents(folder)
    assert of_the_template(found) == of_the_template(contents(render(**recorded(folder))))
    theirs = {name: content for name, content in before.items() if name not in of_the_template(before)}
    assert {name: found.get(name) for name in theirs} == theirs
    assert set(found) - set(of_the_template(found)) == set(theirs)


@pytest.mark.parametrize(("context", "commits"), [(3, 100), (1000, 3)])
def test_a_month_of_work_survives_and_every_fix_arrives(
    render: Callable[..., Path],
    project_of: Callable[..., Path],
    tmp_path: Path,
    release: str,
    context: int,
    commits: int,
) -> None:
    folder = project_of(release, package_name="cells")
    owned = live_a_month(folder, tmp_path / "scratch", commits)
    update(folder, context_lines=context)
    owned.assert_kept()
    found = contents(folder)
    expected = of_the_template(contents(render(**recorded(folder))))
    assert {name for name in expected if found.get(name) != expected[name]} <= owned.edited


def test_a_release_is_in_the_history(own_template: Path, tmp_path: Path, release: str) -> None:
    assert why_absent(own_template, release) is None
    shallow = tmp_path / "shallow"
    run(["git", "clone", "--quiet", "--depth=1", f"file://{own_template}", shallow])
    assert why_absent(shallow, release) == f"{release} is not in this shallow clone: type git fetch --unshallow"
    tag_releases(shallow)
    assert release not in git(shallow, "tag").split()
