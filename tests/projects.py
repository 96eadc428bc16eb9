"""Running commands on rendered projects."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


def run(
    command: Sequence[str | Path],
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Runs a command without a terminal; all that it started has ended when this returns, or the test fails."""
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        print(process.communicate()[0])
        raise
    left = _wait_for_group(process.pid)
    assert not left, f"{command} left processes behind"
    if check:
        assert process.returncode == 0, f"{command} ended with {process.returncode}:\n{output}"
    return subprocess.CompletedProcess(process.args, process.returncode, output)


def _wait_for_group(group: int, seconds: float = 10) -> bool:
    """Whether a process of the group is still there after some seconds; then it is killed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    return True


def git(folder: Path, *arguments: str | Path) -> str:
    """What `git` prints in a folder."""
    return run(["git", *arguments], cwd=folder).stdout


def package(project: Path) -> str:
    """The import name of a rendered project."""
    (folder,) = (path.parent for path in project.glob("src/*/__main__.py"))
    return folder.name


def python(project: Path, *arguments: str | Path, cwd: Path, timeout: float = 300) -> str:
    """Runs Python with a rendered project on its path, without installing it."""
    return run([sys.executable, *arguments], cwd, {"PYTHONPATH": str(project / "src")}, timeout).stdout


def text_files(project: Path) -> dict[str, str]:
    """The rendered files that Git would track, by path."""
    names = git(project, "ls-files", "-z").split("\0")
    return {name: (project / name).read_bytes().decode("utf-8") for name in names if name}
