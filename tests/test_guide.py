"""The pages of a project's guide: what they show works, what they list is complete."""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from projects import package, python


def test_the_task_of_the_guide_trains_and_is_evaluated(render: Callable[..., Path], tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(render(project_name="Wave Tank"), project)
    name = package(project)
    page = (project / "docs/your-own.md").read_text(encoding="utf-8")
    files = re.findall(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(files) == 6
    for path, text in files:
        (project / "src" / name / path).write_text(text, encoding="utf-8")
    (commands,) = re.findall(r"^```bash\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    for line in commands.splitlines():
        command, *words = shlex.split(line)
        assert command in ("python", name.replace("_", "-"))
        python(project, *([] if command == "python" else ["-m", name]), *words, cwd=tmp_path)
    (record,) = (json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.glob("runs/stripes/*/run.json"))
    assert record["status"] == "finished"
    assert record["metrics"]["test/accuracy"] > 0.9
    assert record["metrics"]["train/head_norm"] > 0


@pytest.mark.long
def test_the_commands_for_many_devices_work(render: Callable[..., Path], tmp_path: Path) -> None:
    project = render(project_name="Wave Tank", logger="csv")
    name = package(project)
    programs = {name.replace("_", "-"): ["-m", name], "torchrun": ["-m", "torch.distributed.run"]}
    page = (project / "docs/many-devices.md").read_text(encoding="utf-8")
    commands = "".join(re.findall(r"^```bash\n(.*?)^```", page, re.MULTILINE | re.DOTALL)).splitlines()
    assert len(commands) == 4
    outputs = []
    for line in commands:
        program, *words = shlex.split(line)
        outputs.append(python(project, *programs[program], *words, cwd=tmp_path))
    assert "64 samples a step = 32 per device × 2 devices" in outputs[0]
    assert "going on from runs/two/checkpoints/last.ckpt" in outputs[-1]
    assert "64 samples a step = 64 per device × 1 device" in outputs[-1]
    records = [json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.glob("runs/**/run.json")]
    assert sorted((record["status"], record["world_size"]) for record in records) == [
        ("finished", 1),
        *[("finished", 2)] * 3,
    ]


@pytest.mark.long
def test_the_commands_against_a_training_that_goes_wrong_work(render: Callable[..., Path], tmp_path: Path) -> None:
    project = render(project_name="Wave Tank", logger="csv")
    name = package(project)
    page = (project / "docs/diagnosis.md").read_text(encoding="utf-8")
    commands = "".join(re.findall(r"^```bash\n(.*?)^```", page, re.MULTILINE | re.DOTALL)).splitlines()
    assert len(commands) == 10
    outputs = {}
    for line in commands:
        program, *words = shlex.split(line)
        assert program == name.replace("_", "-")
        outputs[words[-1]] = python(project, "-m", name, *words, cwd=tmp_path)
    assert (tmp_path / "preview/batch.png").exists()
    assert (tmp_path / "find_lr/learning_rate.png").exists()
    assert len(list(tmp_path.glob("runs/debug/*/gradients.png"))) == 1
    assert re.search(r"^\S.*optimizer\.lr=[\d.e-]+$", outputs["find_lr"], re.MULTILINE)
    assert re.search(r"^\S.*data\.batch_size=\d+", outputs["find_batch_size"], re.MULTILINE)
    statuses = [json.loads(path.read_text(encoding="utf-8"))["status"] for path in tmp_path.glob("runs/*/*/run.json")]
    assert set(statuses) == {"finished"}


def test_the_tour_names_every_file_of_the_engine(render: Callable[..., Path]) -> None:
    project = render()
    tour = (project / "docs/tour.md").read_text(encoding="utf-8")
    engine = project / "src" / package(project) / "engine"
    assert re.findall(r"^\| `(\w+\.py)` \|", tour, re.MULTILINE) == sorted(path.name for path in engine.glob("*.py"))
