"""The job script of a project under a stand-in for SLURM, which starts two tasks on this machine."""

import json
import os
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from projects import git, package, run

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

SMALL = ["trainer=cpu", "model=mlp", "callbacks.model_summary=null"]

# Nodes of one task each. As SLURM does before the time is up, it sends SIGUSR1 to all processes of the step, the
# workers of loaders too, as soon as the file $SIGNAL_AFTER exists. A task that fails has the others ended.
SRUN = """
import os, signal, subprocess, sys, time
from pathlib import Path

command = sys.argv[1:]
while command[0].startswith("--"):
    del command[0]
nodes = os.environ["SLURM_NNODES"]
step = os.environ | {"SLURM_STEP_NUM_TASKS": nodes, "SLURM_STEP_NUM_NODES": nodes, "SLURM_LOCALID": "0"}
step["SLURM_STEP_NODELIST"] = f"127.0.0.[1-{nodes}]"
tasks = [
    subprocess.Popen(command, env=step | {"SLURM_PROCID": rank, "SLURM_NODEID": rank}, process_group=0)
    for rank in map(str, range(int(nodes)))
]
waits_for, killing = os.environ.get("SIGNAL_AFTER"), False
while any(task.poll() is None for task in tasks):
    if waits_for and Path(waits_for).exists():
        waits_for = None
        for task in tasks:
            os.killpg(task.pid, signal.SIGUSR1)
    if any(task.poll() for task in tasks) and not killing:
        killing = True
        for task in tasks:
            if task.poll() is None:
                os.killpg(task.pid, signal.SIGTERM)
    time.sleep(0.05)
codes = [task.returncode for task in tasks]
sys.exit(max(128 - code if code < 0 else code for code in codes))
"""
SCONTROL = 'import os, sys\nopen(os.environ["SCONTROL_LOG"], "a").write(" ".join(sys.argv[1:]) + "\\n")\n'


@pytest.fixture
def sbatch(render: Callable[..., Path], tmp_path: Path) -> Callable[..., CompletedProcess[str]]:
    """Runs the script of a project as the job with the number 77, and waits until all its processes have ended."""
    project, tools = tmp_path / "project", tmp_path / "bin"
    shutil.copytree(render(project_name="Wave Tank", logger="csv"), project)
    tools.mkdir()
    (project / ".venv/bin").mkdir(parents=True)
    command = f'PYTHONPATH=src exec {sys.executable} -m {package(project)} "$@"\n'
    for file, text in (
        (project / ".venv/bin/wave-tank", f"#!/bin/sh\n{command}"),
        (tools / "srun", f"#!{sys.executable}\n{SRUN}"),
        (tools / "scontrol", f"#!{sys.executable}\n{SCONTROL}"),
    ):
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    job = {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "SLURM_JOB_ID": "77",
        "SLURM_NNODES": "2",
        "SLURM_CPUS_PER_TASK": "1",
        "MASTER_PORT": str(port),
        "SCONTROL_LOG": str(tmp_path / "scontrol.log"),
    }

    def submitted(*words: str, **environment: str) -> CompletedProcess[str]:
        return run(["bash", "scripts/train.slurm", *SMALL, *words], project, job | environment, 120, check=False)

    return submitted


def test_a_job_out_of_time_goes_on_in_its_next_round(
    sbatch: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    directory, requeued = tmp_path / "project/runs/slurm/77", tmp_path / "scontrol.log"
    words = ("trainer.max_epochs=12", "callbacks.early_stopping=null")
    first = sbatch(*words, SIGNAL_AFTER=str(directory / "checkpoints/last.ckpt"))
    assert first.returncode == 0, first.stdout
    assert requeued.read_text() == "requeue 77\n"
    record = json.loads((directory / "run.json").read_text())
    assert (record["status"], record["signal"], record["world_size"]) == ("interrupted", "SIGUSR1", 2)

    second = sbatch(*words)
    assert second.returncode == 0, second.stdout
    assert "going on from runs/slurm/77/checkpoints/last.ckpt" in second.stdout
    assert requeued.read_text() == "requeue 77\n"
    record = json.loads((directory / "run.json").read_text())
    assert (record["status"], record["epochs"]) == ("finished", 12)
    assert sorted(file.name for file in directory.glob("*.log")) == ["rank-1.log", "train.log"]
    assert [path.name for path in directory.parent.iterdir()] == ["77"]


def test_a_job_of_one_task_is_warned_too(sbatch: Callable[..., CompletedProcess[str]], tmp_path: Path) -> None:
    checkpoint = tmp_path / "project/runs/slurm/77/checkpoints/last.ckpt"
    ended = sbatch("trainer.max_epochs=500", SLURM_NNODES="1", SIGNAL_AFTER=str(checkpoint))
    assert ended.returncode == 0, ended.stdout
    assert (tmp_path / "scontrol.log").read_text() == "requeue 77\n"
    assert "SIGUSR1: a training stops after this step, with a checkpoint" in ended.stdout


def test_a_job_with_a_mistake_ends_although_its_last_round_was_requeued(
    sbatch: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    directory = tmp_path / "project/runs/slurm/77"
    directory.mkdir(parents=True)
    (directory / "run.json").write_text('{"status": "interrupted", "signal": "SIGUSR1"}')
    ended = sbatch("optimizer=adm")
    assert ended.returncode in (2, 143)  # of rank 0, or of rank 1 that srun ended
    assert "adamw" in ended.stdout
    assert not (tmp_path / "scontrol.log").exists()


def test_a_job_needs_the_environment(project: Callable[..., Path]) -> None:
    folder = project()
    missing = run(["bash", "scripts/train.slurm"], folder, {"SLURM_JOB_ID": "77"}, check=False)
    assert missing.returncode == 2
    assert "type make install" in missing.stdout
    assert git(folder, "status", "--porcelain") == ""
