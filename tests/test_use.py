"""What people do with the template and with a project: every command of both READMEs, hooks, wheels, the demo."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from answers import FAR_APART, HOSTILE
from projects import Terminal, git, package, python, run


def code_blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language in a Markdown page."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_command_of_both_readmes_works(own_template: Path) -> None:
    """As a newcomer types them, one after the other; whatever Copier asks is answered with Enter."""
    demo, two_commands = code_blocks(own_template / "README.md", "bash")
    output = run(["bash", "-euxc", demo], own_template, timeout=400).stdout
    accuracy = re.search(r"^Test accuracy +(0\.\d+)$", output, re.MULTILINE)
    assert accuracy, output
    assert float(accuracy[1]) >= 0.98
    assert "cannot be updated" not in output

    with Terminal(["bash", "-euxc", two_commands], own_template) as terminal:
        while "is ready. Next:" not in terminal.screen:
            if not terminal.read(1):
                os.write(terminal.terminal, b"\r")
        while terminal.process.poll() is None:
            terminal.read(1)
        assert terminal.process.returncode == 0, terminal.screen

    project = own_template.parent / "my-project"
    script = "\n".join(code_blocks(project / "README.md", "bash"))
    own = {"PYTEST_DEBUG_TEMPROOT": str(own_template.parent)}  # what its tests write goes with what this test wrote
    run(["bash", "-euxc", script], project, own, timeout=600)
    for snippet in code_blocks(project / "README.md", "python"):
        run([project / ".venv/bin/python", "-c", snippet], project)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("answers", "which"),
    [({}, "processes"), *((answers, "not processes") for answers in FAR_APART)],
    ids=["processes", "mlflow", "hostile", "csv"],
)
def test_its_own_tests_pass(render: Callable[..., Path], tmp_path: Path, answers: dict[str, Any], which: str) -> None:
    """The README's `make test` runs the quick ones for the default answers; every logger is one of these four."""
    project = tmp_path / "project"
    shutil.copytree(render(**answers), project)
    arguments = ["-n0", "-q", "-m", which, "--basetemp", tmp_path / "pytest"]
    python(project, "-m", "pytest", *arguments, cwd=project, timeout=600)


OWN_FILES = {
    "src/PACKAGE/data/waves.py": """
import torch

from ..engine.batched_tensors import BatchedTensors
from ..engine.data_module import DataModule


class Waves(DataModule):
    def __init__(self, length, **loading):
        super().__init__(**loading)
        self.length = length

    def setup(self, stage):
        starts = torch.rand(256, 1)
        waves = torch.sin(starts + torch.arange(self.length + 1) / 4)
        self.train_set = self.val_set = self.test_set = BatchedTensors(waves[:, :-1], waves[:, -1:])
""",
    "src/PACKAGE/models/forecast.py": """
from torch import nn

from ..engine.module import Step, TrainingModule


class Forecast(TrainingModule):
    def __init__(self, length, **training):
        super().__init__(**training)
        self.net = nn.Linear(length, 1)

    def step(self, batch):
        past, future = batch
        outputs = self.net(past)
        return Step(nn.functional.mse_loss(outputs, future), outputs, future)
""",
    "src/PACKAGE/configs/data/waves.yaml": """
defaults: [/base/data@_here_, _self_]
_target_: PACKAGE.data.waves.Waves
length: 12
""",
    "src/PACKAGE/configs/model/forecast.yaml": """
defaults: [/base/model@_here_, _self_]
_target_: PACKAGE.models.forecast.Forecast
length: ${data.length}
""",
    "src/PACKAGE/configs/optimizer/adamax.yaml": "{_target_: torch.optim.Adamax, _partial_: true, lr: 0.01}\n",
    "src/PACKAGE/configs/experiment/longer.yaml": """# @package _global_
defaults:
  - override /optimizer: adamax
data:
  length: 24
""",
}


@pytest.mark.long
@pytest.mark.timeout(600)
def test_its_tests_pass_without_the_examples(render: Callable[..., Path], tmp_path: Path) -> None:
    """As the README says: the owner's data, model and configs take the place of the digits and their networks."""
    project = tmp_path / "project"
    shutil.copytree(render(project_name="Wave Tank"), project)
    source = project / "src" / package(project)
    for name in ("data/digits.py", "models/resnet.py", "models/mlp.py"):
        (source / name).unlink()
    rooms = [*(source / "configs" / name for name in ("data", "model", "experiment")), project / "tests/data"]
    for room in [*rooms, project / "tests/models"]:
        shutil.rmtree(room)
    for name, text in OWN_FILES.items():
        file = project / name.replace("PACKAGE", source.name)
        file.parent.mkdir(exist_ok=True)
        file.write_text(text.replace("PACKAGE", source.name), encoding="utf-8")
    train = source / "configs/train.yaml"
    defaults = train.read_text(encoding="utf-8")
    for old, new in (("data: digits", "data: waves"), ("model: resnet", "model: forecast"), ("r: adamw", "r: adamax")):
        assert old in defaults
        defaults = defaults.replace(old, new)
    train.write_text(defaults, encoding="utf-8")
    python(
        project,
        "-m",
        "pytest",
        "-n0",
        "-q",
        "-m",
        "not processes",
        "--basetemp",
        tmp_path / "pytest",
        cwd=project,
        timeout=600,
    )


@pytest.mark.long
@pytest.mark.parametrize(
    "answers", [{}, {**HOSTILE, "package_name": "z9", "environment": "conda"}], ids=["default", "far"]
)
def test_a_wheel_works_from_any_directory(render: Callable[..., Path], tmp_path: Path, answers: dict[str, Any]) -> None:
    project, site, elsewhere = tmp_path / "project", tmp_path / "site", tmp_path / "elsewhere"
    shutil.copytree(render(**answers), project)
    elsewhere.mkdir()
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, project], tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", site, wheel],
        tmp_path,
    )
    shutil.rmtree(project)

    name = package(render(**answers))
    command = site / "bin" / name.replace("_", "-")
    environment = {"PYTHONPATH": str(site)}
    assert "train" in run([command], elsewhere, environment).stdout
    run([command, "train", "debug=fast", "trainer.limit_test_batches=1.0"], elsewhere, environment)
    (record,) = (json.loads(path.read_text(encoding="utf-8")) for path in elsewhere.glob("runs/debug/*/run.json"))
    output = run([sys.executable, "-m", name, "evaluate", "run=latest"], elsewhere, environment).stdout
    assert f"{record['metrics']['test/accuracy']:.4f}" in output


@pytest.fixture
def with_tools(project: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A committed project whose environment is this one."""
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "pre-commit"))

    def made(**answers: Any) -> Path:
        folder = project(**answers)
        (folder / ".venv").symlink_to(sys.prefix)
        return folder

    return made


@pytest.mark.parametrize("answers", [{}, FAR_APART[1]], ids=["default", "hostile"])
def test_a_fresh_project_passes_its_own_checks(with_tools: Callable[..., Path], answers: dict[str, Any]) -> None:
    project = with_tools(**answers)
    run(["make", "lint"], project)
    run(["make", "format"], project)
    run([".venv/bin/pre-commit", "run", "--all-files"], project)
    assert git(project, "status", "--porcelain") == ""


def test_hooks_stop_what_does_not_belong(with_tools: Callable[..., Path]) -> None:
    project = with_tools()
    run(["make", "hooks"], project)
    refused = {
        f"src/{package(project)}/models/ugly.py": "x   =  1\n",
        f"src/{package(project)}/models/unused.py": "import os\nif True:\n    x = undefined\n",
        "notes.txt": "blanks at the end \n",
        "open.txt": "no line break at the end",
        "merged.txt": "<<<<<<< before updating\n",
        "pyproject.toml.rej": "left over\n",
    }
    for name, text in refused.items():
        (project / name).write_text(text, encoding="utf-8")
        git(project, "add", name)
        assert run(["git", "commit", "--quiet", "--message=x"], project, check=False).returncode == 1, name
        git(project, "rm", "--quiet", "--force", name)
    (project / "fine.txt").write_text("fine\n", encoding="utf-8")
    git(project, "add", "fine.txt")
    git(project, "commit", "--quiet", "--message=Fine")


def test_make_lists_its_targets_and_misses_its_environment(project: Callable[..., Path]) -> None:
    folder = project()
    assert {"install", "train", "test", "lint", "format", "hooks"} <= set(run(["make"], folder).stdout.split())
    missing = run(["make", "train"], folder, check=False)
    assert "There is no environment in .venv: type make install" in missing.stdout


def test_the_demo_leaves_a_directory_of_others_alone(own_template: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.md").write_text("# One\n", encoding="utf-8")
    demo = ["sh", own_template / "scripts/demo.sh", tmp_path / "thesis"]
    refused = run(demo, env={"BIN": str(Path(sys.executable).parent), "ARGS": ""}, check=False)
    assert refused.returncode == 1
    assert "make demo DEST=another/directory" in refused.stdout
    assert os.listdir(tmp_path / "thesis") == ["chapter.md"]


@pytest.mark.long
@pytest.mark.parametrize("source", ["dirty", "shallow", "without git"])
def test_a_demo_says_when_it_cannot_be_updated(own_template: Path, tmp_path: Path, source: str) -> None:
    """A second demo replaces the project but keeps its environment, here this one."""
    checkout = tmp_path / "checkout"
    if source == "shallow":
        run(["git", "clone", "--quiet", "--depth=1", f"file://{own_template}", checkout])
    else:
        shutil.copytree(own_template, checkout)
        (checkout / "template/docs/tour.md.jinja").write_text("# Changed\n", encoding="utf-8")
    if source == "without git":
        shutil.rmtree(checkout / ".git")
    demo = tmp_path / "demo"
    demo.mkdir()
    (demo / ".made-by-make-demo").touch()
    (demo / "old.txt").touch()
    (demo / ".venv").symlink_to(sys.prefix)
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin/make"
    fake.write_text(
        '#!/bin/sh\ncase "$*" in *train*)\n'
        f'cd "$3" && PYTHONPATH=src exec {sys.executable} -m cells train debug=fast;; esac\n',
        encoding="utf-8",
    )
    fake.chmod(0o755)
    environment = {
        "BIN": str(Path(sys.executable).parent),
        "ARGS": "",
        "PATH": f"{fake.parent}{os.pathsep}{os.environ['PATH']}",
    }
    command = ["sh", checkout / "scripts/demo.sh", demo, "-d", "package_name=cells"]
    output = run(command, tmp_path, environment).stdout
    reason = {"dirty": "changes that are not committed", "shallow": "shallow clone", "without git": "no Git history"}
    assert "cannot be updated by copier update: this " in output
    assert reason[source] in output
    assert "Warning" not in output
    assert ".venv/bin/cells evaluate run=latest" in output
    assert not (demo / "old.txt").exists()
    assert (demo / ".venv").is_symlink()


def test_the_workshop_is_documented(template: Path) -> None:
    """Every path that the documentation links to is there."""
    for page in [template / "README.md", *template.glob("docs/*.md"), *template.glob("template/docs/*.md*")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            target = page.parent / link
            assert target.exists() or target.with_name(f"{target.name}.jinja").exists(), (page.name, link)


def test_make_lint_finds_nothing(own_template: Path) -> None:
    run(["sh", "scripts/lint.sh"], own_template, {"BIN": str(Path(sys.executable).parent)})


def test_every_practice_names_a_file_and_a_test_that_are_there(render: Callable[..., Path]) -> None:
    project = render()
    source = project / "src/my_project"
    rows = re.findall(r"^\| P\d\d \|(.*)\|$", (project / "docs/practices.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 20
    for row in rows:
        _, _, files, tests = row.split("|")
        for name in re.findall(r"`([^`]+)`", files):
            assert (source / name).exists() or (project / name).exists(), name
        for test, name in re.findall(r"`(test_\w+)` in `([\w/.]+)`", tests):
            assert f"def {test}(" in (project / "tests" / name).read_text(encoding="utf-8"), test
