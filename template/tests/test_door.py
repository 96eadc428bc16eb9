"""The command line: what it answers without importing torch, and what it says about mistakes."""

import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from toy_task import choose_toy

ROOT = Path(__file__).parents[1]
SCRIPT, ENTRY = next(iter(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"].items()))
PACKAGE = ENTRY.partition(".")[0]
TOY = choose_toy()

# An import of torch would take seconds; this finder turns it into an error.
WITHOUT_TORCH = f"""
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "lightning"):
            raise RuntimeError(name + " was imported")
sys.meta_path.insert(0, Refuse())
sys.argv[0] = {SCRIPT!r}
from {PACKAGE}.__main__ import main
sys.exit(main())
"""


class Door:
    """Runs the command line in an empty directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if name not in ("HYDRA_FULL_ERROR", "COLUMNS")}
        return subprocess.run(
            [sys.executable, "-c", WITHOUT_TORCH, *words],
            cwd=self.directory,
            env={**inherited, **environment},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    def complaint(self, *words: str) -> str:
        """The line that a mistake gets; it is the only output and leaves nothing behind."""
        done = self(*words)
        assert done.returncode == 2, done.stderr
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1, done.stderr
        assert list(self.directory.iterdir()) == []
        return done.stderr.strip()

    def completions(self, line: str) -> list[str]:
        return self("-sc", "query=bash", COMP_LINE=f"{SCRIPT} {line}").stdout.split()


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(tmp_path)


def test_no_command_lists_all_commands(door: Door) -> None:
    listed = door().stdout
    assert "  train     " in listed
    assert "  evaluate  " in listed
    assert "  runs      " in listed
    assert door("--help").stdout == listed


def test_python_m_names_itself(door: Door) -> None:
    done = subprocess.run(
        [sys.executable, "-m", PACKAGE],
        cwd=door.directory,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"usage: python -m {PACKAGE} COMMAND")


def test_train_help_lists_groups_keys_and_flags(door: Door) -> None:
    page = door("train", "--help").stdout
    assert page.startswith(f"usage: {SCRIPT} train ")
    assert "optimizer=adamw " in page
    assert "optimizer=sgd " in page
    assert "  debug=fast " in page
    assert re.search(r"^  \* \w+=", page, re.MULTILINE)
    assert not re.search(r"^[ *]*base=", page, re.MULTILINE)
    assert "--cfg job" in page


def test_evaluate_help_lists_its_keys_only(door: Door) -> None:
    page = door("evaluate", "--help").stdout
    assert "checkpoint=null " in page
    assert "optimizer=" not in page.partition("Flags")[0]
    assert max(len(line) for line in page.splitlines()) <= 80


def test_runs_are_listed_without_torch_and_hydra(door: Door) -> None:
    run = door.directory / "runs" / "baseline" / "1"
    run.mkdir(parents=True)
    (run / "run.json").write_text('{"status": "finished", "started": "2026-01-01T00:00:00+00:00", "name": "baseline"}')
    script = WITHOUT_TORCH.replace('"lightning"', '"lightning", "hydra"')
    done = subprocess.run(
        [sys.executable, "-c", script, "runs"], cwd=door.directory, capture_output=True, text=True, check=True
    )
    assert re.search(r"^finished  \d+ d +runs/baseline/1 +none$", done.stdout, re.MULTILINE), done.stdout
    assert door("runs", "--help").stdout.startswith(f"usage: {SCRIPT} runs ...\n\nList the runs, ")


def test_runs_takes_one_folder(door: Door) -> None:
    assert "(got 'a b')" in door.complaint("runs", "a", "b")
    assert "(got '--all')" in door.complaint("runs", "--all")
    assert door.complaint("runs", "status=failed").startswith("status=failed is no folder: ")


def test_other_ranks_leave_a_command_to_rank_0(door: Door) -> None:
    done = door("runs", RANK="2", WORLD_SIZE="4", LOCAL_RANK="2", MASTER_ADDR="node-1")
    assert (done.returncode, done.stdout) == (0, "")
    cure = "if there is no other, type: unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR"
    assert done.stderr == f"rank 2 of 4 leaves runs to rank 0; {cure}\n"


def test_the_config_is_shown_without_torch(door: Door) -> None:
    done = door("train", "--cfg", "job", *TOY, "optimizer.lr=0.25")
    assert done.returncode == 0, done.stderr
    assert "lr: 0.25" in done.stdout


@pytest.mark.parametrize(
    ("words", "start", "hint"),
    [
        (["trian"], "trian is no command. Did you mean ", "train"),
        (["train", "optimizer=adamm"], "optimizer=adamm does not exist. Did you mean ", "adam"),
        (["train", "experimnt=x"], "experimnt does not exist. Did you mean ", "experiment"),
        (["train", "debug=fsat"], "debug=fsat does not exist. Did you mean ", "fast"),
        (["train", *TOY, "optimizer.lrr=1"], "optimizer.lrr does not exist. Did you mean ", "optimizer.lr"),
        (["train", *TOY, "lr=1"], "lr does not exist. Did you mean ", "optimizer.lr"),
        (["train", "optimizer=???"], "You must specify 'optimizer'", ""),
        (["train", "name=(a"], "Hydra cannot read name=(a", ""),
        (["train", "--lr=0.1"], "--lr is no flag: keys are set without dashes, as in lr=0.1", ""),
        (["train", "--cfg", "job", "--resolve", *TOY, "name=${nme}"], "Interpolation key 'nme' not found", ""),
        (["train", "-m", "optimizer=sgd,adma"], "optimizer=adma does not exist. Did you mean ", "adam"),
        (["train", *TOY, "hydra.run.dir=/dev/null/run"], "/dev/null/run cannot be written: Not a directory", ""),
        (["train", "-m", *TOY, "hydra.sweep.dir=/dev/null/s"], "/dev/null/s cannot be written: Not a directory", ""),
        (["evaluate", "optimizer=sgd"], "optimizer does not exist. The config has ", ""),
    ],
)
def test_a_mistake_gets_one_line(door: Door, words: list[str], start: str, hint: str) -> None:
    complaint = door.complaint(*words)
    assert complaint.startswith(start)
    assert hint in complaint.removeprefix(start)


def test_hydra_full_error_shows_the_traceback(door: Door) -> None:
    done = door("train", "optimzer=adam", HYDRA_FULL_ERROR="1")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(
    "path",
    ["a,b", "run (1)/x=2", "{fold}", "it's", "end\\", "2025_01", "1e5", "null_run", "plain/best.ckpt", "C:\\a b", "ö"],
)
def test_a_path_reaches_hydra_as_typed(path: str) -> None:
    path_options = importlib.import_module(f"{PACKAGE}.engine.path_options")
    words = path_options.quote_path_options([f"checkpoint={path}", f"init_from={path}", "optimizer.lr=0.1"])
    checkpoint, init_from, lr = OverridesParser.create().parse_overrides(words)
    assert (checkpoint.value(), init_from.value(), lr.value()) == (path, path, 0.1)


def test_completion_knows_commands_groups_options_and_keys(door: Door) -> None:
    assert "train" in door.completions("")
    assert "train" in door.completions("tr")
    assert door.completions("ru") == ["runs"]
    assert door.completions("runs ") == []
    assert "optimizer=" in door.completions("train opt")
    assert "optimizer=sgd" in door.completions("train -m optimizer=")
    assert "optimizer.lr=" in door.completions("train optimizer=sgd optimizer.")
    assert door.completions("evaluate check") == ["checkpoint="]
    assert door.completions("evaluate opt") == []
    assert list(door.directory.iterdir()) == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_with_the_installed_function(door: Door) -> None:
    wrapper = door.directory / SCRIPT
    wrapper.write_text(f"#!{sys.executable}\n{WITHOUT_TORCH}", encoding="utf-8")
    wrapper.chmod(0o755)
    press_tab = f"""
        eval "$({SCRIPT} -sc install=bash)"
        complete -p {SCRIPT} >/dev/null || exit 1
        COMP_LINE="{SCRIPT} train optimizer=rm" COMP_POINT=99 COMP_CWORD=2
        hydra_bash_completion
        echo "${{COMPREPLY[@]}}"
        eval "$({SCRIPT} -sc uninstall=bash)"
        complete -p {SCRIPT} 2>/dev/null && echo "still there"
        true
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", press_tab],
        env={**os.environ, "PATH": f"{door.directory}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "optimizer=rmsprop" in done.stdout.split(), done.stderr
    assert all(word.startswith("optimizer=rm") for word in done.stdout.split())


def test_a_reader_that_leaves_is_no_error(door: Door) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write) as nobody:
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_TORCH, "train", "--help"],
            stdout=nobody,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, "")


A_JOB = f"""
import os, sys
import hydra
from {PACKAGE}.engine import hydra_command
from {PACKAGE}.engine.errors import UserError

@hydra.main(version_base="1.3", config_path="CONFIGS", config_name="evaluate")
@hydra_command.hydra_job
def main(config):
    if config.split == "mistake":
        raise UserError("split=mistake: type another")
    if config.split == "bug":
        raise ZeroDivisionError("a bug")
    if config.split == "interrupt":
        raise KeyboardInterrupt
    print("switch:", os.environ.get("HYDRA_FULL_ERROR"))

class Command:
    pass

Command.main = main
sys.modules["{PACKAGE}.commands.evaluate"] = Command
"""


def run_a_job(door: Door, kind: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in the place of `evaluate` that ends as `kind` says."""
    file = door.directory / "job.py"
    configs = (ROOT / "src" / PACKAGE / "configs" / "commands").as_posix()
    start = f"from {PACKAGE}.engine.command_line import main as door\nsys.exit(door())\n"
    file.write_text(A_JOB.replace("CONFIGS", configs) + start, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(file), "evaluate", f"split={kind}"],
        cwd=door.directory,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("kind", "code", "stdout", "stderr"),
    [
        ("test", 0, "switch: None\n", ""),
        ("mistake", 2, "", "split=mistake: type another\n"),
        ("interrupt", 130, "", ""),
    ],
)
def test_what_a_job_raises_decides_the_exit_code(door: Door, kind: str, code: int, stdout: str, stderr: str) -> None:
    done = run_a_job(door, kind)
    assert (done.returncode, done.stdout, done.stderr) == (code, stdout, stderr)


def test_a_bug_in_a_job_keeps_its_traceback(door: Door) -> None:
    done = run_a_job(door, "bug")
    assert done.returncode == 1
    assert "in run_job" in done.stderr
    assert done.stderr.endswith("ZeroDivisionError: a bug\n")
