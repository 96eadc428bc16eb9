"""Jobs on many processes: the worker group, sweeps, torchrun and SLURM, and everything that may end them early."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import DIRECTORIES, PACKAGE, SMALL, TWO, WITNESS, Job, fault, left_after, read, status

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

PATIENT = ["+callbacks.witness={_target_: faults.Witness, pause: 0.1}", "trainer.max_epochs=20"]
LIMIT = 30  # seconds from a fault to the end of all processes


@pytest.fixture
def torchrun(start: Callable[..., Job]) -> Callable[..., Job]:
    """The same on two processes that torchrun starts; `agent` are its own arguments."""

    def started(*overrides: str, agent: tuple[str, ...] = ("--standalone", "--nproc-per-node=2")) -> Job:
        command = ["-m", "torch.distributed.run", *agent, "-m", PACKAGE, "train"]
        return start(*command, *SMALL, *DIRECTORIES, "strategy=ddp", *overrides)

    return started


@pytest.fixture
def slurm(start: Callable[..., Job]) -> Callable[..., list[Job]]:
    """The same on two nodes of one process each, as `srun` would start them; `port` decides the job's id."""

    def started(*overrides: str, port: int) -> list[Job]:
        step = {
            "SLURM_JOB_ID": str(port - 15000),
            "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_STEP_NUM_NODES": "2",
            "SLURM_STEP_NODELIST": "127.0.0.[1-2]",
            "SLURM_LOCALID": "0",
        }
        command = ["-m", PACKAGE, "train", *SMALL, *DIRECTORIES, "strategy=ddp", *overrides]
        return [start(*command, **step, SLURM_PROCID=str(rank), SLURM_NODEID=str(rank)) for rank in (0, 1)]

    return started


def listen(first: int = 15000) -> socket.socket:
    """Takes a free port, one that the engine may choose for a job of SLURM."""
    for port in range(first + os.getpid() % 10000, 30000):
        taken = socket.socket()
        try:
            taken.bind(("", port))
            taken.listen()
        except OSError:
            taken.close()
        else:
            return taken
    raise RuntimeError("no port is free")


def free_port() -> int:
    with listen() as taken:
        return taken.getsockname()[1]


def log(run: Path, rank: int) -> str:
    return (run / ("train.log" if rank == 0 else f"rank-{rank}.log")).read_text(encoding="utf-8")


def assert_ended_in_time(run: Path, more: float = 0) -> None:
    assert time.time() - (run / "fault").stat().st_mtime < LIMIT + more


def assert_stopped_together(run: Path, signal_name: str) -> None:
    """Both ranks ended after the same step, with a checkpoint, and the record says why."""
    steps = [re.findall(r"stopped after step (\d+), with a checkpoint", log(run, rank)) for rank in (0, 1)]
    assert len(steps[0]) == 1
    assert steps[0] == steps[1]
    assert_interrupted(run, signal_name)


def assert_interrupted(run: Path, signal_name: str) -> None:
    record = read(run / "run.json")
    assert (record["status"], record["signal"]) == ("interrupted", signal_name)
    assert (run / "checkpoints/last.ckpt").exists()


def assert_jobs_are_whole(sweep: Path, rates: list[float]) -> None:
    """One directory; each job has one config, and all its ranks hold its values and the same weights."""
    assert sorted(os.listdir(sweep)) == [*map(str, range(len(rates))), "multirun.yaml", "sweep.json"]
    assert len(list(sweep.rglob("config.yaml"))) == len(rates)
    weights = set()
    for number, rate in enumerate(rates):
        run = sweep / str(number)
        assert status(run) == "finished"
        assert (run / ".hydra/config.yaml").exists()
        first, second = (read(run / f"witness-{rank}") for rank in (0, 1))
        assert first == second
        assert first["lr"] == rate
        weights.add(first["weights"])
    assert len(weights) == len(rates)


@pytest.mark.parametrize(
    ("how", "rank", "says"),
    [
        ("raise", 0, "ValueError: a fault on rank 0"),
        ("raise", 1, "ValueError: a fault on rank 1"),
        ("exit", 1, "SystemExit: 0"),
        ("kill", 0, "rank 0 was killed by signal 9, as the system does when memory runs out"),
        ("vanish", 1, "rank 1 ended without a word: killed, perhaps because memory ran out"),
    ],
)
def test_a_rank_that_fails_ends_the_job(
    train: Callable[..., Job], tmp_path: Path, how: str, rank: int, says: str
) -> None:
    job, run = train(*TWO, fault(how, rank=rank)), tmp_path / "run"
    assert job.end() == 1
    assert_ended_in_time(run)
    assert job.last_line == says
    record = read(run / "run.json")
    assert (record["status"], record["failed_rank"], record["error"]) == ("failed", rank, says)
    if how in ("raise", "exit"):
        traceback = log(run, rank)
        assert "on_train_batch_start" in traceback
        assert f"\n{says}\n" in traceback
        assert f"rank {rank} failed\n" in job.text


def test_a_rank_that_hangs_is_the_one_to_blame(train: Callable[..., Job], tmp_path: Path) -> None:
    """Two jobs at once, as waiting takes no time of the processor."""
    jobs = [train(*TWO, fault("hang", rank=rank), "strategy.timeout=4", f"hydra.run.dir=run-{rank}") for rank in (0, 1)]
    for rank, job in enumerate(jobs):
        run = tmp_path / f"run-{rank}"
        assert job.end() == 1
        assert_ended_in_time(run, more=4)
        assert job.last_line.startswith(f"rank {rank} hung: rank {1 - rank} waited for it in vain")
        record = read(run / "run.json")
        assert (record["status"], record["failed_rank"]) == ("failed", rank)
        assert re.search(r'faults\.py", line \d+ in on_train_batch_start', log(run, rank))


# Runs the command line as `python -m` does, then tells what is left of its jobs in this process.
DRIVER = f"""
import multiprocessing, os, signal, sys
def state():
    return dict(os.environ), [signal.getsignal(number) for number in signal.valid_signals()]
before = state()
from {PACKAGE}.engine.command_line import main
assert main() == 0
from torch import distributed
assert state() == before
assert not distributed.is_initialized()
assert not multiprocessing.active_children()
"""


def test_a_sweep_gives_every_rank_its_job_s_values_and_leaves_nothing_behind(
    start: Callable[..., Job], tmp_path: Path
) -> None:
    sweep = ["-m", "optimizer.lr=0.1,0.01,0.001"]
    assert start("-c", DRIVER, "train", *SMALL, *DIRECTORIES, *TWO, WITNESS, *sweep).end() == 0
    assert_jobs_are_whole(tmp_path / "sweep", [0.1, 0.01, 0.001])
    ports = {read(file)["port"] for file in tmp_path.glob("sweep/*/witness-0")}
    assert len(ports) == 3  # nothing of a job is handed to the next


@pytest.mark.parametrize("devices", [1, 2])
def test_a_sweep_goes_on_after_a_job_was_killed(train: Callable[..., Job], tmp_path: Path, devices: int) -> None:
    killed = fault("kill", only_lr=0.01)
    job = train("-m", "optimizer.lr=0.1,0.01,0.001", "strategy=ddp", f"trainer.devices={devices}", killed)
    assert job.end() != 0
    assert [status(tmp_path / "sweep" / number) for number in "012"] == ["finished", "failed", "finished"]
    assert "was killed by signal 9" in read(tmp_path / "sweep/1/run.json")["error"]
    assert "trial 1 failed: " in job.text
    assert job.last_line == "1 of 3 trials failed"


def test_torchrun_shares_a_sweep(torchrun: Callable[..., Job], tmp_path: Path) -> None:
    job = torchrun(WITNESS, "-m", "optimizer.lr=0.1,0.01")
    assert job.end() == 0
    assert_jobs_are_whole(tmp_path / "sweep", [0.1, 0.01])
    assert job.text.count("epoch 1/1") == 2  # rank 0 alone speaks


def test_two_agents_of_torchrun_share_a_sweep(torchrun: Callable[..., Job], tmp_path: Path) -> None:
    meet = ("--nnodes=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--rdzv-id=1")
    agent = (*meet, "--nproc-per-node=1", "--local-addr=127.0.0.1")
    agents = [torchrun(WITNESS, "-m", "optimizer.lr=0.1,0.01", agent=agent) for _ in range(2)]
    assert [job.end() for job in agents] == [0, 0]
    assert_jobs_are_whole(tmp_path / "sweep", [0.1, 0.01])


def test_torchrun_shows_a_mistake_once(torchrun: Callable[..., Job]) -> None:
    job = torchrun("optimizer.lrr=1")
    assert job.end() != 0
    assert len(re.findall(r"^optimizer\.lrr does not exist\. Did you mean .*$", job.text, re.MULTILINE)) == 1


def test_torchrun_prints_a_config_once(torchrun: Callable[..., Job]) -> None:
    job = torchrun("--cfg", "job")
    assert job.end() == 0
    assert len(re.findall(r"^optimizer:$", job.text, re.MULTILINE)) == 1


def test_torchrun_names_the_error_of_the_rank_that_failed(torchrun: Callable[..., Job], tmp_path: Path) -> None:
    job = torchrun(fault("raise", rank=1))
    assert job.end() != 0
    assert_ended_in_time(tmp_path / "run")
    summary = job.text.partition("Root Cause")[2]
    assert "ValueError: a fault on rank 1" in summary
    record = read(tmp_path / "run/run.json")
    assert (record["status"], record["failed_rank"]) == ("failed", 1)
    assert "\nValueError: a fault on rank 1\n" in log(tmp_path / "run", 1)


def test_a_signal_to_one_rank_of_torchrun_stops_all(torchrun: Callable[..., Job], tmp_path: Path) -> None:
    job = torchrun(*PATIENT, fault("term", rank=1))
    assert job.end() != 0
    assert_ended_in_time(tmp_path / "run")
    assert_stopped_together(tmp_path / "run", "SIGTERM")


def test_slurm_interrupts_a_job_that_goes_on_later(slurm: Callable[..., list[Job]], tmp_path: Path) -> None:
    run, port = tmp_path / "run", free_port()
    command = [*PATIENT, "trainer.max_epochs=3", "resume=auto"]
    jobs = slurm(*command, port=port)
    for rank, job in enumerate(jobs):
        job.wait_for(run / f"pid-{rank}")
    for job in jobs:
        job.process.send_signal(signal.SIGUSR1)
    assert [job.end() for job in jobs] == [128 + signal.SIGUSR1] * 2
    assert_stopped_together(run, "SIGUSR1")

    again = slurm(*command, port=port)
    assert [job.end() for job in again] == [0, 0]
    assert "going on from" in again[0].text
    assert status(run) == "finished"
    assert [read(run / f"witness-{rank}")["steps"] for rank in (0, 1)] == [27, 27]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["run"]


def test_a_taken_port_is_told_in_one_line(slurm: Callable[..., list[Job]]) -> None:
    with listen() as taken:
        port = taken.getsockname()[1]
        first, second = slurm(port=port)
        assert first.end() == 2
        second.process.kill()  # as srun does when a task has failed
    (line,) = first.text.splitlines()
    assert f"MASTER_PORT={port}" in line
    assert "choose another MASTER_PORT" in line


LEAKS = {
    "LOCAL_RANK": "1",
    "RANK": "1",
    "WORLD_SIZE": "1",
    "MASTER_ADDR": "192.0.2.1",
    "MASTER_PORT": "1",
    "SLURM_PROCID": "3",
    "SLURM_NTASKS": "4",
    "SLURM_JOB_ID": "7",
}


def test_jobs_at_once_ignore_each_other_and_variables_of_others(train: Callable[..., Job], tmp_path: Path) -> None:
    jobs = [
        train(f"hydra.run.dir=run-{number}", "strategy=ddp", f"trainer.devices={devices}", WITNESS, **LEAKS)
        for number, devices in enumerate((1, 2, 2))
    ]
    for number, job in enumerate(jobs):
        assert job.end() == 0
        run = tmp_path / f"run-{number}"
        assert (run / "checkpoints/best.ckpt").exists()
        assert "val/loss" in (run / "csv/metrics.csv").read_text(encoding="utf-8")
        assert status(run) == "finished"


@pytest.mark.parametrize(
    ("number", "receiver"), [(signal.SIGINT, "all"), (signal.SIGTERM, "launcher"), (signal.SIGUSR1, "rank 1")]
)
def test_a_signal_stops_both_ranks_after_the_same_step(
    train: Callable[..., Job], tmp_path: Path, number: signal.Signals, receiver: str
) -> None:
    job, run = train(*TWO, *PATIENT), tmp_path / "run"
    job.wait_for(run / "pid-0", run / "pid-1")
    if receiver == "all":
        job.signal(number)
    else:
        os.kill(job.process.pid if receiver == "launcher" else read(run / "pid-1"), number)
    assert job.end(LIMIT) == 128 + number
    assert_stopped_together(run, number.name)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_one_process(train: Callable[..., Job], tmp_path: Path, number: signal.Signals) -> None:
    job = train(*PATIENT)
    job.wait_for(tmp_path / "run/pid-0")
    job.signal(number)
    assert job.end(LIMIT) == 128 + number
    assert_interrupted(tmp_path / "run", number.name)


def test_ctrl_c_ends_a_sweep(train: Callable[..., Job], tmp_path: Path) -> None:
    job = train(*PATIENT, "-m", "optimizer.lr=0.1,0.01")
    job.wait_for(tmp_path / "sweep/0/pid-0")
    job.signal(signal.SIGINT)
    assert job.end(LIMIT) == 128 + signal.SIGINT
    assert_interrupted(tmp_path / "sweep/0", "SIGINT")
    assert not (tmp_path / "sweep/1").exists()


@pytest.mark.parametrize("devices", [1, 2])
def test_a_second_ctrl_c_ends_a_step_that_hangs(train: Callable[..., Job], tmp_path: Path, devices: int) -> None:
    job = train("strategy=ddp", f"trainer.devices={devices}", fault("hang", rank=devices - 1))
    job.wait_for(tmp_path / "run/fault")
    job.signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        job.process.wait(1)
    job.signal(signal.SIGINT)
    assert job.end(5) == 128 + signal.SIGINT
    assert status(tmp_path / "run") == "interrupted"


def test_ranks_end_when_the_process_that_started_them_is_gone(train: Callable[..., Job], tmp_path: Path) -> None:
    job, run = train(*TWO, *PATIENT, "trainer.max_epochs=100"), tmp_path / "run"
    job.wait_for(run / "pid-0", run / "pid-1")
    job.process.kill()
    job.process.wait()
    assert not left_after(25, tmp_path)
