"""The runs below a folder as a table of text, from their records alone: neither torch nor Hydra is imported."""

import shlex
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from .config_folder import SCRIPT, TRAINS
from .errors import UserError
from .run_record import NAME, is_running, read

TITLES = ("status", "age", "run", "epochs", "best", "checkpoint")
SPANS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


class Row(NamedTuple):
    """A run: when it began, what the table says of it, and how to go on with it."""

    began: datetime
    cells: tuple[str, ...]
    resume: str


def run_table(folder: Path, now: datetime | None = None) -> str:
    """A line for every run below `folder`, the newest last, and the command that goes on with one that is not done.

    Raises:
        UserError: there is no such folder.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder: train first, or name the folder that holds the runs")
    now = now or datetime.now().astimezone()
    rows = sorted(_row(record.parent, now) for record in folder.rglob(NAME))
    if not rows:
        return f"no run below {folder}\n"
    widths = [max(map(len, column)) for column in zip(TITLES, *(row.cells for row in rows), strict=True)]
    lines = [_line(TITLES, widths)]
    for row in rows:
        lines += [_line(row.cells, widths), *([f"  {row.resume}"] if row.resume else [])]
    return "\n".join(lines) + "\n"


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _row(run: Path, now: datetime) -> Row:
    written = datetime.fromtimestamp((run / NAME).stat().st_mtime).astimezone()
    try:
        record = read(run)
        began = datetime.fromisoformat(record.get("started") or written.isoformat())
    except (UserError, ValueError):
        return Row(written, ("unreadable", _age(now - written), str(run), "", "", ""), "")
    status = status_of(record)
    is_done = status in ("finished", "running", "claimed") or status.startswith("running on")
    can_go_on = not is_done and (run / "checkpoints" / "last.ckpt").exists()
    resume = f"{SCRIPT} {TRAINS} resume={shlex.quote(str(run))}" if can_go_on else ""
    cells = (status, _age(now - began), _name(run, record), str(record.get("epochs", "")), _best(record), _file(run))
    return Row(began, cells, resume)


def status_of(record: dict[str, Any]) -> str:
    """The status in the record, corrected where the run was killed or only begins."""
    if not record:
        return "claimed"  # its processes start
    if record["status"] != "running" or "process" not in record:
        return str(record["status"])
    running = is_running(record)
    return f"running on {record['process']['host']}" if running is None else "running" if running else "killed"


def _age(age: timedelta) -> str:
    seconds = max(0, int(age.total_seconds()))
    return next((f"{seconds // length} {unit}" for length, unit in SPANS if seconds >= length), "0 s")


def _name(run: Path, record: dict[str, Any]) -> str:
    """The directory, which holds the name of the experiment unless somebody has chosen another one."""
    name = record.get("name")
    return str(run) if name is None or name in run.parts else f"{run} ({name})"


def _best(record: dict[str, Any]) -> str:
    return f"{record['monitor']} {record['best_score']:.4g}" if "best_score" in record else ""


def _file(run: Path) -> str:
    """The checkpoint that `evaluate` takes, or the one that a run goes on from."""
    files = (name for name in ("best.ckpt", "last.ckpt") if (run / "checkpoints" / name).exists())
    return next(files, "none")
