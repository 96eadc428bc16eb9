"""Running commands on rendered projects."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
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


class Terminal:
    """A command in a terminal of its own, read and typed into."""

    CLEAR = "\x01\x0b"  # to the start of the line, delete to its end
    REDRAW = "\x0c"  # a prompt writes only what changed on the screen, unless it is told to

    def __init__(self, command: Sequence[str | Path], cwd: Path) -> None:
        self.terminal, inside = pty.openpty()
        termios.tcsetwinsize(inside, (30, 250))
        self.process = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd,
            stdin=inside,
            stdout=inside,
            stderr=inside,
            env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(inside)
        self.screen = ""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.terminal)

    def type(self, text: str) -> None:
        self.screen = ""
        os.write(self.terminal, text.encode())

    def read(self, seconds: float = 0.1) -> bool:
        """Adds what was written meanwhile to `screen`; False when there was nothing."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return False
        try:
            written = os.read(self.terminal, 65536).decode("utf-8", "replace")
        except OSError:  # the command has ended
            return False
        if "\x1b[6n" in written:  # a prompt asks where the cursor is
            os.write(self.terminal, b"\x1b[1;1R")
        self.screen += written
        return True

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Reads on until `text`, given without blanks, has appeared."""
        end = time.monotonic() + seconds
        while text not in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\s", "", self.screen):
            assert time.monotonic() < end, f"{text!r} did not appear in {self.screen!r}"
            self.read()


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
