"""A run that is killed again and again, at any moment, ends as the one that was left alone.

`make soak` kills it many times.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

KILLS = int(os.environ.get("KILLS", "3"))
PACKAGE = "z9"
TRAIN = [
    *("-m", PACKAGE, "train", "trainer=cpu", "model=mlp", "seeding=deterministic", "resume=auto", "test=false"),
    *("callbacks=early_stopping", "callbacks.early_stopping.patience=1000", "model.net.dropout=0.2"),
]


@pytest.mark.long
@pytest.mark.timeout(120 + 30 * KILLS)
def test_kills_at_random_moments_lose_nothing(render: Callable[..., Path], tmp_path: Path) -> None:
    """Its temporary files lie on another file system, which a rename cannot cross."""
    project = render(package_name=PACKAGE, logger="csv")
    epochs = f"trainer.max_epochs={8 * (KILLS + 2)}"
    other = Path("/dev/shm")
    environment = {"PYTHONPATH": str(project / "src")} | ({"TMPDIR": str(other)} if other.is_dir() else {})

    def start(directory: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, *TRAIN, epochs, f"hydra.run.dir={directory}"]
        with (tmp_path / f"{directory}.txt").open("ab") as console:
            return subprocess.Popen(
                command,
                cwd=tmp_path,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    draw = random.Random(0)
    for _ in range(KILLS):
        process = start("killed")
        at_least = epochs_of(tmp_path / "killed") + 1
        while process.poll() is None and epochs_of(tmp_path / "killed") < at_least:
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 1.5))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for file in (tmp_path / "killed/checkpoints").glob("*.ckpt"):
            torch.load(file)
    assert start("killed").wait(120) == 0, (tmp_path / "killed.txt").read_text()
    assert start("whole").wait(120) == 0, (tmp_path / "whole.txt").read_text()

    record = json.loads((tmp_path / "killed/run.json").read_text())
    assert record["status"] == "finished"
    assert len(record["resumed"]) == KILLS
    for name in ("last", "best"):
        whole, killed = (torch.load(tmp_path / run / f"checkpoints/{name}.ckpt") for run in ("whole", "killed"))
        for key in ("state_dict", "optimizer_states", "lr_schedulers", "epoch", "global_step"):
            assert is_same(whole[key], killed[key]), f"{name}: {key}"
    assert not [path for path in (tmp_path / "killed/checkpoints").iterdir() if path.name.startswith(".")]
    assert (tmp_path / "whole/csv/metrics.csv").read_text() == (tmp_path / "killed/csv/metrics.csv").read_text()


def epochs_of(run: Path) -> int:
    """How many epochs the run has done, by its record."""
    try:
        return int(json.loads((run / "run.json").read_text()).get("epochs", 0))
    except (FileNotFoundError, json.JSONDecodeError):
        return 0


def is_same(one: Any, other: Any) -> bool:
    """Equal to the last bit, all the way down."""
    if isinstance(one, dict):
        return list(one) == list(other) and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else bool(one == other)
