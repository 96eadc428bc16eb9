"""Measures the template and a project rendered from it; prints a table with the goal beside each figure.

    python -m benchmarks [asking] [first-step] [step] [processes] [sweep] [copy]

Commands are timed as whole processes, in turn with what they are compared with; ratios are medians over rounds of the
ratio within a round, so that a machine whose speed drifts does not favour one side.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks import WARMUP

ROOT = Path(__file__).parents[1]
PACKAGE = "cell_counter"
ROUNDS = 5
IMPORT = [sys.executable, "-c", "import lightning.pytorch"]


class Figure(NamedTuple):
    """One measured value, its goal (at most, or at least), and what it was computed from."""

    name: str
    value: float
    goal: float
    detail: str
    is_least: bool = False

    @property
    def is_met(self) -> bool:
        return self.value >= self.goal if self.is_least else self.value <= self.goal


def main(chosen: list[str]) -> None:
    sections: dict[str, Callable[[Path], Iterator[Figure]]] = {
        "asking": asking,
        "first-step": first_step,
        "step": step,
        "processes": processes,
        "sweep": sweep,
        "copy": copy,
    }
    unknown = [name for name in chosen if name not in sections]
    if unknown:
        sys.exit(f"no benchmark is called {unknown[0]}: choose from {', '.join(sections)}")
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory) / "project"
        render(ROOT, project)
        sys.stdout.write(f"{'':44}  value   goal\n")
        for name in chosen or sections:
            for figure in sections[name](project):
                met = "" if figure.is_met else "  missed"
                sys.stdout.write(f"{figure.name:44}  {figure.value:5.2f}  {figure.goal:5.2f}{met:8}  {figure.detail}\n")
                sys.stdout.flush()


def asking(project: Path) -> Iterator[Figure]:
    """Questions at the command line, against the import of Lightning that a slow one would pay."""
    for name, words in {
        "the list of commands": [],
        "train --help": ["train", "--help"],
        "train --cfg job": ["train", "--cfg", "job"],
        "a mistyped override": ["train", "optimizer.lrr=1"],
    }.items():
        yield _against_import(f"{name} / import lightning", project, words, goal=0.15)


def first_step(project: Path) -> Iterator[Figure]:
    """From the command to the first optimizer step."""
    exit_target = "+callbacks.exit._target_=benchmarks.first_step.ExitAfterFirstStep"
    yield _against_import("first optimizer step / import lightning", project, ["train", exit_target], goal=1.3)


def step(project: Path) -> Iterator[Figure]:
    """One training step; in a terminal, since the progress bar draws on a terminal only."""
    result = project.parent / "step.json"
    command = [sys.executable, "-m", "benchmarks.step", str(project), PACKAGE, str(result)]
    _run_in_terminal(command, _environment(project))
    times = json.loads(result.read_text(encoding="utf-8"))
    names = ("generated", "tutorial", "usual", "watching")
    detail = ", ".join(f"{name} {times[name]:.0f} µs" for name in names)
    yield Figure("step / tutorial loop", times["generated_over_tutorial"], 1.1, detail)
    yield Figure("step / usual Lightning pattern", times["generated_over_usual"], 0.45, detail)
    yield Figure("measuring the wait / step", times["watching_over_generated"], 0.02, detail)


def processes(project: Path) -> Iterator[Figure]:
    """Two processes on the CPU with one thread each, against one with one thread, by turns."""
    result = project.parent / "throughput.json"
    clock = ["+callbacks.clock._target_=benchmarks.throughput.Clock", f"+callbacks.clock.result='{result}'"]
    # a network whose step takes more than 50 ms, so that the gradients have something to hide behind
    large = [
        "model=resnet",
        "model.net.width=64",
        "model.net.norm=group",
        "data.batch_size=128",
        "data._target_=benchmarks.throughput.ManyDigits",
        "trainer.max_epochs=1",
        f"trainer.max_steps={WARMUP + 32}",
    ]
    quiet = ["callbacks=none", "checkpoint=off", "logger=none", "test=false"]

    def rate(count: int) -> dict[str, float]:
        _train(project, count, *large, *quiet, "++trainer.limit_val_batches=0", *clock)
        return json.loads(result.read_text(encoding="utf-8"))

    def plain(count: int) -> float:
        command = [sys.executable, "-m", "benchmarks.plain_ddp", str(count), "128"]
        environment = {**_environment(project), "OMP_NUM_THREADS": "1"}
        return float(
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120).stdout
        )

    rounds = [(rate(1), rate(2), plain(1), plain(2)) for _ in range(ROUNDS)]
    pairs = [(one, two) for one, two, *_ in rounds]
    by_hand = statistics.median(two / one for *_, one, two in rounds)
    ratio = statistics.median(two["samples_per_second"] / one["samples_per_second"] for one, two in pairs)
    one, two = (statistics.median(pair[place]["samples_per_second"] for pair in pairs) for place in (0, 1))
    step = 1000 * statistics.median(pair[0]["seconds_a_step"] for pair in pairs)
    detail = f"{two:.0f} / {one:.0f} samples a second, {step:.0f} ms a step; by hand {by_hand:.2f}"
    yield Figure("samples a second, 2 processes / 1", ratio, 1.7, detail, is_least=True)

    short = [*quiet, "model=mlp", "trainer.max_steps=1", "++trainer.limit_val_batches=0"]
    times = [
        (_seconds(lambda: _train(project, 1, *short)), _seconds(lambda: _train(project, 2, *short)))
        for _ in range(ROUNDS + 1)
    ][1:]
    ratio = statistics.median(two / one for one, two in times)
    one, two = (statistics.median(values) for values in zip(*times, strict=True))
    yield Figure("a job of one step, 2 processes / 1", ratio, 1.6, f"{two:.2f} s / {one:.2f} s")


def sweep(project: Path) -> Iterator[Figure]:
    """20 trials of 10 steps, against the same 20 as commands of their own."""
    folder = project.parent / "training"
    folder.mkdir()
    few = ["model=mlp", "trainer.max_epochs=1", "++trainer.limit_train_batches=10", "++trainer.limit_val_batches=1"]
    clock = ["+callbacks.clock._target_=benchmarks.throughput.TrainingTime", f"+callbacks.clock.folder='{folder}'"]
    command = [*few, "logger=csv", "test=false", *clock]
    together = _seconds(lambda: _train(project, 1, *command, "-m", "seeding.seed=range(0,20)"))
    training = sum(float(file.read_text(encoding="utf-8")) for file in folder.iterdir())
    apart = _seconds(lambda: [_train(project, 1, *command, f"seeding.seed={seed}") for seed in range(20)])
    detail = f"{together:.1f} s, of which {training:.1f} s are training"
    yield Figure("a trial of a sweep, seconds beside training", (together - training) / 20, 0.5, detail)
    yield Figure("20 commands / a sweep of 20", apart / together, 5, f"{apart:.1f} s / {together:.1f} s", is_least=True)


def copy(project: Path) -> Iterator[Figure]:
    """Rendering, against rendering a template of one file."""
    with tempfile.TemporaryDirectory() as directory:
        empty = Path(directory) / "empty"
        (empty / "template").mkdir(parents=True)
        (empty / "copier.yml").write_text("_subdirectory: template\n", encoding="utf-8")
        (empty / "template" / "file").write_text("", encoding="utf-8")
        ours, nothing = [], []
        for number in range(ROUNDS):
            nothing.append(_seconds(lambda number=number: render(empty, Path(directory) / f"empty-{number}")))
            ours.append(_seconds(lambda number=number: render(ROOT, Path(directory) / f"ours-{number}")))
        files = sum(path.is_file() for path in (Path(directory) / "ours-0").rglob("*"))
    each = 1000 * statistics.median(a - b for a, b in zip(ours, nothing, strict=True)) / files
    yield Figure("copier copy, ms a file over an empty template", each, 10, f"{files} files")
    yield Figure(
        "copier copy, seconds", statistics.median(ours), 2, f"an empty template {statistics.median(nothing):.2f} s"
    )


def render(template: Path, destination: Path) -> None:
    """`copier copy` as a user types it."""
    command = [sys.executable, "-W", "ignore", "-m", "copier", "copy", "--quiet", "--defaults", "--vcs-ref", "HEAD"]
    _run([*command, "--data", "project_name=Cell Counter", str(template), str(destination)])


def _run_in_terminal(command: list[str], environment: dict[str, str]) -> None:
    """Runs a command that believes it writes to a terminal; what it writes is thrown away."""
    ours, its = pty.openpty()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=its, stderr=its, env=environment)
    os.close(its)
    with contextlib.suppress(OSError):  # reading fails when the other end is closed
        while os.read(ours, 65536):
            pass
    os.close(ours)
    if process.wait():
        sys.exit(f"{' '.join(command)} failed with exit code {process.returncode}")


def _against_import(name: str, project: Path, words: list[str], goal: float) -> Figure:
    command = [sys.executable, "-m", PACKAGE, *words]
    environment = _environment(project)
    times = [
        (_seconds(lambda: _run(command, project, environment)), _seconds(lambda: _run(IMPORT, project, environment)))
        for _ in range(ROUNDS + 1)
    ][1:]
    ours, imports = (statistics.median(values) for values in zip(*times, strict=True))
    ratio = statistics.median(one / other for one, other in times)
    return Figure(name, ratio, goal, f"{ours:.2f} s / {imports:.2f} s")


def _environment(project: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(project / "src"), str(ROOT)])}


def _train(project: Path, processes: int, *overrides: str) -> None:
    """A training on so many processes of one thread; ends the benchmark if it fails."""
    devices = ["strategy=ddp", "trainer=cpu", f"trainer.devices={processes}"]
    command = [sys.executable, "-m", PACKAGE, "train", *devices, *overrides]
    environment = {**_environment(project), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def _run(command: list[str], directory: Path | None = None, environment: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=directory, env=environment, capture_output=True, check=False)


def _seconds(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


if __name__ == "__main__":
    main(sys.argv[1:])
