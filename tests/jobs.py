"""Commands of a rendered project as processes of a test, and what they leave."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

PACKAGE = "z9"
MARK = "PROCESS_OF_TEST"  # in the environment of all that a test starts, in whatever session it is
SMALL = ["trainer=cpu", "model=mlp", "trainer.max_epochs=1", "callbacks.model_summary=null", "test=false"]
TWO = ["strategy=ddp", "trainer.devices=2"]
WITNESS = "+callbacks.witness={_target_: faults.Witness}"
DIRECTORIES = ["hydra.run.dir=run", "hydra.sweep.dir=sweep"]


def fault(how: str, **where: Any) -> str:
    settings = "".join(f", {key}: {value}" for key, value in where.items())
    return f"+callbacks.fault={{_target_: faults.Fault, how: {how}{settings}}}"


class Job:
    """A command that runs in a session of its own and writes to a file."""

    def __init__(self, command: list[str], console: Path, environment: dict[str, str]) -> None:
        self.console = console
        with console.open("w") as file:
            self.process = subprocess.Popen(
                command,
                cwd=console.parent,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def text(self) -> str:
        return self.console.read_text(encoding="utf-8", errors="replace")

    @property
    def last_line(self) -> str:
        return self.text.rstrip().splitlines()[-1]

    def wait_for(self, *files: Path) -> None:
        """Until it has written these files."""
        end = time.monotonic() + 60
        while not all(file.exists() for file in files):
            assert self.process.poll() is None, self.text
            assert time.monotonic() < end, self.text
            time.sleep(0.02)

    def signal(self, number: int) -> None:
        """As a terminal does with Ctrl-C: to everything in its session."""
        os.killpg(self.process.pid, number)

    def end(self, seconds: float = 100) -> int:
        """Its exit code."""
        try:
            code = self.process.wait(seconds)
        finally:
            print(self.text)
        return code


def processes_of(test: Path) -> list[int]:
    """The processes that a test has started and whose life has not ended."""
    mark = f"{MARK}={test}\0".encode()
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in file.read_bytes():
                found.append(int(file.parent.name))
        except OSError:  # it has just ended, or belongs to somebody else
            continue
    return found


def left_after(seconds: float, test: Path) -> list[int]:
    """The processes of a test that have not ended after some seconds."""
    end = time.monotonic() + seconds
    while (left := processes_of(test)) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def status(run: Path) -> str:
    return read(run / "run.json")["status"]
