"""One clone of the template and one render of each set of answers for all workers of a session."""

import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import copier
import pytest
from answers import ROOT
from filelock import FileLock
from jobs import DIRECTORIES, MARK, PACKAGE, SMALL, Job, left_after
from projects import git, run
from quick_copier import make_copier_quick
from releases import VERSION, tag_releases, why_absent

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS")


def pytest_configure(config: pytest.Config) -> None:
    """Leaves nothing of the person who runs the tests: settings of Git and Copier, accounts, devices, threads."""
    nowhere = os.devnull
    for name in list(os.environ):
        if name.startswith(("GIT_", "COPIER_", "WANDB_", "MLFLOW_", "HYDRA_", "MAKE", "MFLAGS")):
            del os.environ[name]
    for name in ("VENV", "ARGS", "DATA", "DEST", "BIN", "PYTHONPATH", "PYTHONWARNINGS", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)
    os.environ |= {
        "GIT_CONFIG_GLOBAL": nowhere,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.com",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.com",
        "COPIER_SETTINGS_PATH": str(ROOT / "tests/no_settings.yml"),
        "NETRC": nowhere,
        "CUDA_VISIBLE_DEVICES": "",
        "NO_COLOR": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        **dict.fromkeys(THREADS, "1"),
    }
    make_copier_quick()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests first, so that no worker is left alone with one of them."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that all workers of this session share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "shared"
    folder.mkdir(exist_ok=True)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "pycache")
    return folder


@pytest.fixture(scope="session")
def once(shared: Path) -> Callable[[str, Callable[[Path], None]], Path]:
    """Makes a folder in the first worker that wants it; a half-made one is never seen."""

    def made(name: str, make: Callable[[Path], None]) -> Path:
        path = shared / name
        with FileLock(f"{path}.lock"):
            if not path.exists():
                draft = path.with_name(f"{name}-draft")
                shutil.rmtree(draft, ignore_errors=True)
                make(draft)
                draft.rename(path)
        return path

    return made


@pytest.fixture(scope="session")
def template(once: Callable[..., Path]) -> Path:
    """A clone of this repository with the working tree on top, tagged as a version, and every release tagged."""

    def make(folder: Path) -> None:
        names = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
        if not any(names):
            raise RuntimeError(f"{ROOT} is no Git repository: clone it, the tests need to")
        run(["git", "clone", "--quiet", "--no-checkout", ROOT, folder])
        for name in filter(None, names):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--allow-empty", "--message=The working tree")
        git(folder, "tag", VERSION)
        tag_releases(folder)

    return once("template", make)


@pytest.fixture
def own_template(template: Path, tmp_path: Path) -> Path:
    """A clone that a test may release new versions in."""
    clone = tmp_path / "template"
    run(["git", "clone", "--quiet", template, clone])
    return clone


@pytest.fixture(scope="session")
def render(template: Path, once: Callable[..., Path]) -> Callable[..., Path]:
    """Renders a set of answers once a session, of this version or of a release. Copy what it returns to change it."""

    def rendered(*, release: str = VERSION, **answers: Any) -> Path:
        key = hashlib.sha256(json.dumps([release, answers], sort_keys=True).encode()).hexdigest()[:12]
        reason = why_absent(template, release) if release != VERSION else None
        if reason:
            pytest.fail(reason)

        def make(folder: Path) -> None:
            copier.run_copy(
                str(template), folder, data=answers, vcs_ref=release, defaults=True, unsafe=False, quiet=True
            )

        return once(f"project-{key}", make)

    return rendered


@pytest.fixture
def project(render: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """Renders a set of answers into a Git repository of its own, committed."""

    def made(**answers: Any) -> Path:
        folder = tmp_path / "project"
        shutil.copytree(render(**answers), folder)
        git(folder, "init", "--quiet", "--initial-branch=main")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message=Start")
        return folder

    return made


@pytest.fixture
def start(render: Callable[..., Path], tmp_path: Path) -> Generator[Callable[..., Job]]:
    """Starts Python in `tmp_path`; when the test ends, no process may be left."""
    path = os.pathsep.join([str(render(package_name=PACKAGE, logger="csv") / "src"), str(Path(__file__).parent)])
    jobs: list[Job] = []

    def started(*words: str, **environment: str) -> Job:
        console = tmp_path / f"console-{len(jobs)}.txt"
        jobs.append(Job([sys.executable, *words], console, {"PYTHONPATH": path, MARK: str(tmp_path)} | environment))
        return jobs[-1]

    yield started
    left = left_after(30, tmp_path)
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    for job in jobs:
        job.process.wait()
    assert not commands


@pytest.fixture
def train(start: Callable[..., Job]) -> Callable[..., Job]:
    """Starts a small training in `run`, or a sweep of them in `sweep`."""

    def started(*overrides: str, **environment: str) -> Job:
        return start("-m", PACKAGE, "train", *SMALL, *DIRECTORIES, *overrides, **environment)

    return started
