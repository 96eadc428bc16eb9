"""Sweeps as commands: every launcher, trials that fail, what goes on afterwards, and Optuna's studies."""

import html
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml
from conftest import THREADS
from jobs import PACKAGE, TWO, WITNESS, Job, read, status
from optuna.trial import TrialState
from wandb.sdk.launch.sweeps.utils import create_sweep_command, create_sweep_command_args

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

SHORT = ["-m", "++trainer.limit_train_batches=3", "++trainer.limit_val_batches=1"]
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
CORES = len(os.sched_getaffinity(0))


def trials(sweep: Path) -> list[Path]:
    """The directories of a sweep's trials, by their numbers."""
    return sorted((file.parent for file in sweep.glob("[0-9]*/run.json")), key=lambda run: int(run.name))


def config(run: Path) -> Any:
    return yaml.safe_load((run / ".hydra/config.yaml").read_text(encoding="utf-8"))


def best_command(job: Job) -> list[str]:
    """The words behind `z9 train` of the command that a sweep has printed for its best trial."""
    [line] = re.findall(rf"^ +(?:OMP_NUM_THREADS=\d+ )?{PACKAGE} train (.*)$", job.text, re.MULTILINE)
    return shlex.split(line)


def test_trials_fail_alone_and_only_they_are_repeated(train: Callable[..., Job], tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    mended = tmp_path / "mended"
    faulty = f"+callbacks.fault={{_target_: faults.Fault, how: no, step: 2, unless: {mended}}}"
    job = train(*SHORT, faulty, "callbacks.fault.how=no,raise,memory,kill,poison")
    assert job.end() == 1
    assert [status(run) for run in trials(sweep)] == ["finished", "failed", "out_of_memory", "failed", "nonfinite"]
    assert "ValueError: a fault on rank 0" in (sweep / "1/train.log").read_text()
    assert "in on_train_batch_start" in (sweep / "1/train.log").read_text()
    assert "trials     5, 1 of them succeeded\n" in job.text
    for number, how, reason in (
        (1, "raise", "ValueError: a fault on rank 0"),
        (2, "memory", "out of memory"),
        (3, "kill", "the process of this trial was killed by signal 9"),
        (4, "poison", "the loss is not finite"),
    ):
        [line] = re.findall(rf"^  {number}  callbacks\.fault\.how={how}: (.*)$", job.text, re.MULTILINE)
        assert reason in line
    assert job.last_line == "4 of 5 trials failed"

    kept = (sweep / "0/run.json").read_bytes()
    mended.touch()
    again = train("-m", "resume_sweep=sweep", "sweep.metric=val/accuracy", "sweep.direction=maximize")
    assert again.end() == 0
    assert (sweep / "0/run.json").read_bytes() == kept
    assert [status(run) for run in trials(sweep)[5:]] == ["finished"] * 4
    assert "trials     5, 5 of them succeeded\n" in again.text


def test_the_best_trial_s_command_gives_its_score(train: Callable[..., Job], tmp_path: Path) -> None:
    job = train(*SHORT, "sweep=seeds", "sweep.seeds=3")
    assert job.end() == 0
    scores = {run.name: read(run / "run.json")["best_score"] for run in trials(tmp_path / "sweep")}
    best = min(scores, key=lambda name: scores[name])
    assert len(set(scores.values())) == 3
    assert f"in sweep/{best}\n" in job.text
    words = best_command(job)
    assert f"seeding.seed={best}" in words
    assert train(*words).end() == 0
    assert read(tmp_path / "run/run.json")["best_score"] == scores[best]


def test_a_grid_that_was_interrupted_goes_on(train: Callable[..., Job], tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    slow = "+callbacks.witness={_target_: faults.Witness, pause: 0.2}"
    job = train("-m", "++trainer.limit_train_batches=8", slow, "seeding.seed=0,1,2")
    job.wait_for(sweep / "1/pid-0")
    job.signal(signal.SIGINT)
    assert job.end() == 130
    assert f"go on with the sweep: {PACKAGE} train -m resume_sweep=sweep\n" in job.text
    assert [status(run) for run in trials(sweep)] == ["finished", "interrupted"]
    again = train("-m", "resume_sweep=sweep")
    assert again.end() == 0
    assert "trial 0 has finished before\n" in again.text
    assert "trials     3, 3 of them succeeded\n" in again.text
    assert [(status(run), config(run)["seeding"]["seed"]) for run in trials(sweep)] == [
        ("finished", 0),
        ("interrupted", 1),
        ("finished", 1),
        ("finished", 2),
    ]


# A SLURM of one machine: what is submitted runs at once, and every state is that of the processes.
SBATCH = """
import os, re, subprocess, sys
from pathlib import Path
script = Path(sys.argv[-1])
tasks = re.search(r"^#SBATCH --array=0-(\\d+)", script.read_text(), re.MULTILINE)
for task in range(int(tasks[1]) + 1):
    where = dict(SLURM_JOB_ID=str(100 + task), SLURM_ARRAY_JOB_ID="99", SLURM_ARRAY_TASK_ID=str(task))
    where |= dict(SLURM_NTASKS="1", SLURM_JOB_NUM_NODES="1", SLURM_STEP_NUM_TASKS="1", SLURM_NODEID="0")
    where |= dict(SLURM_PROCID="0", SLURM_LOCALID="0", SLURM_JOB_NODELIST="localhost", SLURM_CPUS_PER_TASK="1")
    with open(os.environ["SLURM_STATES"] + f".{task}.txt", "w") as console:
        process = subprocess.Popen(["bash", str(script)], env=os.environ | where, stdout=console, stderr=console)
    Path(os.environ["SLURM_STATES"], f"99_{task}").write_text(str(process.pid))
print("Submitted batch job 99")
"""
SRUN = """
import os, sys
words = sys.argv[1:]
first = next(place for place, word in enumerate(words) if not word.startswith("-") and words[place - 1] not in VALUED)
os.execvp(words[first], words[first:])
""".replace("VALUED", repr(("--output", "--error")))
SACCT = """
import os
from pathlib import Path
print("JobID|State|NodeList")
for file in sorted(Path(os.environ["SLURM_STATES"]).iterdir()):
    stat = Path(f"/proc/{file.read_text()}/stat")
    is_over = not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"
    print(f"{file.name}|{'COMPLETED' if is_over else 'RUNNING'}|localhost")
"""


@pytest.fixture
def slurm_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sbatch`, `srun`, `sacct` and `scontrol` of a cluster of one machine."""
    commands, states = tmp_path / "bin", tmp_path / "states"
    commands.mkdir()
    states.mkdir()
    for name, text in (("sbatch", SBATCH), ("srun", SRUN), ("sacct", SACCT), ("scontrol", 'print("localhost")')):
        (commands / name).write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_STATES", str(states))


@pytest.mark.usefixtures("slurm_commands")
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local", "submitit_slurm", "ray"])
def test_launchers_run_trials_on_two_processes_each(train: Callable[..., Job], tmp_path: Path, launcher: str) -> None:
    address = ["+hydra.launcher.ray.init._node_ip_address=127.0.0.1"] if launcher == "ray" else []
    seeds = ["sweep=seeds", "sweep.seeds=2"]
    job = train(*SHORT, f"launcher={launcher}", *address, *TWO, WITNESS, *seeds)
    assert job.end(200) == 0
    assert "trials     2, 2 of them succeeded\n" in job.text
    seen = set()
    for number, run in enumerate(trials(tmp_path / "sweep")):
        assert (status(run), config(run)["seeding"]["seed"]) == ("finished", number)
        first, second = (read(run / f"witness-{rank}") for rank in (0, 1))
        assert first == second
        seen.add(first["weights"])
    assert len(seen) == 2


def test_cores_are_divided_among_trials_at_once(
    train: Callable[..., Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in THREADS:
        monkeypatch.delenv(name)
    assert train(*SHORT, "launcher=joblib", "sweep=seeds", "sweep.seeds=2").end() == 0
    threads = [read(run / "run.json")["threads"] for run in trials(tmp_path / "sweep")]
    assert threads == [max(1, CORES // 2)] * 2


def test_each_fold_validates_once(train: Callable[..., Job], tmp_path: Path) -> None:
    assert train(*SHORT, "sweep=folds", "data.folds=3").end() == 0
    assert [config(run)["data"]["fold"] for run in trials(tmp_path / "sweep")] == [0, 1, 2]


def test_the_sweeps_over_learning_rates_and_optimizers(train: Callable[..., Job], tmp_path: Path) -> None:
    steps = ["trainer.max_steps=3", "++trainer.val_check_interval=3", "++trainer.limit_val_batches=1"]
    assert train("-m", "sweep=learning_rate", *steps).end() == 0
    rates = [config(run)["optimizer"]["lr"] for run in trials(tmp_path / "sweep")]
    assert rates == sorted(rates)
    assert (rates[0], rates[-1], len(rates)) == (1e-5, 1e-1, 13)
    few = ["optimizer=adam,sgd", "scheduler=constant", "hydra.sweep.dir=optimizers"]
    assert train(*SHORT, "sweep=optimizers", *few).end() == 0
    found = [config(run)["optimizer"] for run in trials(tmp_path / "optimizers")]
    pairs = [(optimizer["_target_"].rpartition(".")[2], optimizer["lr"]) for optimizer in found]
    assert sorted(pairs) == [(name, rate) for name in ("Adam", "SGD") for rate in (0.001, 0.01, 0.1)]


def test_a_study_goes_on_after_failures_and_a_kill(train: Callable[..., Job], tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    fail_once = f"+callbacks.fault={{_target_: faults.FaultOnce, marker: {tmp_path}/failed}}"
    slow = "+callbacks.witness={_target_: faults.Witness, pause: 0.3}"
    job = train("-m", "++trainer.limit_train_batches=5", "sweep=optuna", "hydra.sweeper.n_trials=5", fail_once, slow)
    job.wait_for(sweep / "3/pid-0")
    job.signal(signal.SIGKILL)
    assert job.end() == -signal.SIGKILL
    assert [status(run) for run in trials(sweep)] == ["failed", "finished", "finished", "running"]
    again = train("-m", "resume_sweep=sweep")
    assert again.end() == 0
    assert "trials     5, 5 of them succeeded\n" in again.text
    assert [status(run) for run in trials(sweep)[4:]] == ["finished"] * 3

    storage = f"sqlite:///{sweep}/study.db"
    study = optuna.load_study(study_name=optuna.get_all_study_summaries(storage)[0].study_name, storage=storage)
    finished = [trial for trial in study.trials if trial.state == TrialState.COMPLETE]
    assert len(finished) == 5
    assert len({json.dumps(trial.params, sort_keys=True) for trial in finished}) == 5
    for trial in study.trials:
        if trial.state == TrialState.FAIL:
            assert trial.params in [other.params for other in finished]
    scores = {read(run / "run.json")["best_score"] for run in trials(sweep) if status(run) == "finished"}
    assert {trial.value for trial in finished} == scores
    rates = [config(run)["optimizer"]["lr"] for run in trials(sweep) if status(run) == "finished"]
    assert all(1e-4 <= rate <= 1e-1 for rate in rates)


def test_a_search_is_seeded(train: Callable[..., Job], tmp_path: Path) -> None:
    search = ["sweep=optuna", "hydra.sweeper.n_trials=2"]
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        assert train(*SHORT, *search, f"hydra.sweep.dir={name}", f"seeding.seed={seed}").end() == 0
    proposed = {name: [config(run)["optimizer"]["lr"] for run in trials(tmp_path / name)] for name in "abc"}
    assert proposed["a"] == proposed["b"]
    assert proposed["a"] != proposed["c"]


def test_a_metric_that_nobody_logs_ends_the_sweep(train: Callable[..., Job], tmp_path: Path) -> None:
    job = train(*SHORT, "sweep=seeds", "sweep.metric=val/auc", "sweep.direction=maximize")
    assert job.end() == 2
    assert re.fullmatch(r"sweep\.metric=val/auc is not logged: choose one of .*val/accuracy, .*val/loss", job.last_line)
    assert len(trials(tmp_path / "sweep")) == 1
    assert status(tmp_path / "sweep/0") == "failed"


def test_another_metric_decides_by_its_best_value(train: Callable[..., Job], tmp_path: Path) -> None:
    job = train("-m", "optimizer.lr=0.001,0.01", "sweep.metric=val/accuracy", "sweep.direction=maximize")
    assert job.end() == 0
    reached = []
    for run in trials(tmp_path / "sweep"):
        header, *rows = [line.split(",") for line in (run / "metrics.csv").read_text().splitlines()]
        reached.append(max(float(row[header.index("val/accuracy")]) for row in rows))
    assert f"best       {max(reached):.6g} in sweep/{reached.index(max(reached))}\n" in job.text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sweep=seedz"], "sweep=seedz does not exist. Did you mean seeds?"),
        (["sweep=seeds,folds"], "sweep=seeds,folds: a command runs one sweep"),
        (["sweep=seeds", "sweep.direction=up"], "sweep.direction must be minimize or maximize (got up)"),
        (["sweep=optuna", "sweep.storage=sqlite:////nowhere/a.db"], "sweep.storage=sqlite:////nowhere/a.db cannot be"),
        (["sweep=seeds", "sweep.seeds=0"], "seeding.seed=range(0,0) names no value"),
        (["sweep=seeds", "sweep.seeds=two"], "Hydra cannot read seeding.seed=range(0,two)"),
        (
            ["sweep=seeds", "sweep.min_success=6"],
            "sweep.min_success must be a number from 0 to 5, the number of trials",
        ),
        (
            ["optimizer.lr=interval(0,1)"],
            "optimizer.lr=interval(0,1) is for a search, not for a grid: add sweep=optuna",
        ),
        (["launcher=submitit_slurm", "seeding.seed=0,1"], "launcher=submitit_slurm needs SLURM"),
    ],
)
def test_a_mistyped_sweep_leaves_no_directory(
    train: Callable[..., Job], tmp_path: Path, words: list[str], says: str
) -> None:
    job = train("-m", *words)
    assert job.end() == 2
    assert job.last_line.startswith(says)
    assert not (tmp_path / "sweep").exists()


def test_a_sweep_that_goes_on_otherwise_is_judged_by_its_new_words(train: Callable[..., Job], tmp_path: Path) -> None:
    assert train(*SHORT, "optimizer.lr=-1,0.01", "optimizer=sgd", "seeding.seed=null").end() == 1
    job = train("-m", "resume_sweep=sweep", "optimizer.lr=0.01,0.02")
    assert job.end() == 0
    assert "trial 1 has finished before\n" in job.text
    assert "trials     2, 2 of them succeeded\n" in job.text
    again = train("-m", "resume_sweep=sweep", "trainer.max_epochs=2")  # so do the words of the second command
    assert again.end() == 0
    assert "has finished before" not in again.text
    assert "trials     2, 2 of them succeeded\n" in again.text
    best = best_command(again)
    [seed] = [word.removeprefix("seeding.seed=") for word in best if word.startswith("seeding.seed=")]
    assert int(seed) in [read(run / "run.json")["seed"] for run in trials(tmp_path / "sweep")[-2:]]


def test_a_space_that_no_longer_fits_its_study_gets_one_line(train: Callable[..., Job]) -> None:
    assert train(*SHORT, "sweep=optuna", "hydra.sweeper.n_trials=1").end() == 0
    space = "hydra.sweeper.params={optimizer.lr: 'choice(0.1,0.2)'}"
    job = train("-m", "resume_sweep=sweep", "hydra.sweeper.n_trials=2", space)
    assert job.end() == 2
    assert job.last_line.startswith("Optuna cannot search this space: ")


def test_two_sweeps_do_not_share_a_directory(train: Callable[..., Job], tmp_path: Path) -> None:
    slow = "+callbacks.witness={_target_: faults.Witness, pause: 0.3}"
    first = train("-m", "++trainer.limit_train_batches=20", slow, "seeding.seed=0,1")
    first.wait_for(tmp_path / "sweep/0/pid-0")
    second = train("-m", "seeding.seed=2,3")
    assert second.end() == 2
    assert second.last_line == "sweep is still being trained, by another command: wait, or end that first"
    assert first.end() == 0
    assert "trials     2, 2 of them succeeded\n" in first.text


def test_the_guide_s_commands_work(start: Callable[..., Job], render: Callable[..., Path], tmp_path: Path) -> None:
    page = (render(package_name=PACKAGE, logger="csv") / "docs/sweeps.md").read_text(encoding="utf-8")
    commands = "".join(re.findall(r"^```bash\n(.*?)^```", page, re.MULTILINE | re.DOTALL)).splitlines()
    assert len(commands) == 6
    for command in commands:
        job = start("-m", *shlex.split(command, comments=True))
        assert job.end() == 0
    assert len(trials(tmp_path / "runs/search")) == 4
    assert (tmp_path / "runs/rates/report.html").exists()
    assert start("-m", PACKAGE, "report").end() == 0  # of all of them, with what they predicted in the test
    if BROWSER:
        opened_as_on_a_phone(tmp_path / "runs/report.html", BROWSER)


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")
def test_the_report_of_a_sweep_opens_on_a_phone(
    train: Callable[..., Job], start: Callable[..., Job], tmp_path: Path
) -> None:
    grid = ["optimizer.lr=0.01,0.02", "optimizer.weight_decay=0.01,0.1", "test=true"]
    assert train(*SHORT, *grid).end() == 0
    assert start("-m", PACKAGE, "report", "sweep").end() == 0
    assert BROWSER is not None
    opened_as_on_a_phone(tmp_path / "sweep/report.html", BROWSER)


def opened_as_on_a_phone(page: Path, browser: str) -> None:
    """No message on the browser's console, no request, every picture drawn, and nothing to be scrolled sideways."""
    measure = """document.title = JSON.stringify({
        pictures: [...document.images].map(image => image.naturalWidth),
        charts: [...document.querySelectorAll("figure svg")].map(chart => chart.getBoundingClientRect().width),
        width: document.documentElement.scrollWidth, window: window.innerWidth,
        requests: performance.getEntriesByType("resource").map(entry => entry.name).filter(n => !n.startsWith("data:"))
    })"""
    measured = page.with_name("measured.html")
    measured.write_text(page.read_text(encoding="utf-8") + f"<script>{measure}</script>", encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=500,900", "--enable-logging=stderr"]
    profile = f"--user-data-dir={page.parent}/browser"
    seen = subprocess.run(
        [browser, *options, profile, "--dump-dom", measured.as_uri()], capture_output=True, text=True, timeout=60
    )
    assert "CONSOLE" not in seen.stderr
    title = re.findall(r"<title>(.*?)</title>", seen.stdout)[0]  # charts have some, too
    facts = json.loads(html.unescape(title))
    assert facts["pictures"]
    assert min(facts["pictures"]) > 0
    assert len(facts["charts"]) >= 8
    assert min(facts["charts"]) > 100
    assert facts["width"] <= facts["window"] == 500
    assert facts["requests"] == []


def test_the_sweep_file_of_wandb_composes(start: Callable[..., Job], render: Callable[..., Path]) -> None:
    project = render(package_name=PACKAGE, logger="csv")
    sweep = yaml.safe_load((project / "scripts/wandb_sweep.yaml").read_text(encoding="utf-8"))
    values = {name: {"value": range_["min"]} for name, range_ in sweep["parameters"].items()}
    words: list[str] = []
    for word in create_sweep_command(sweep["command"]):
        known = {"${args_no_hyphens}": create_sweep_command_args({"args": values})["args_no_hyphens"], "${env}": []}
        words += known.get(word, [word])
    job = start("-m", *words, "--cfg", "job")
    assert job.end() == 0
    composed = yaml.safe_load(job.text)
    assert [composed["optimizer"][name] for name in ("lr", "weight_decay")] == [0.0001, 0.00001]
    assert list(composed["logger"]) == ["wandb"]
