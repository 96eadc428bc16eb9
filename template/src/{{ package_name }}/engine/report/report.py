"""Making the report of some folders of runs."""

import os
from pathlib import Path

from ..errors import UserError
from .experiments import read_runs, sweeps
from .learning_rate import range_test
from .table import Table


def report(folders: list[Path]) -> tuple[str, Path]:
    """Writes `report.csv` and `report.html` into the folder, of several into the current one.

    Returns the table of configurations with what sweeps say of the learning rate as text, and the page's path.

    Raises:
        UserError: a folder has no runs, a file cannot be written, or matplotlib is missing.
    """
    runs = read_runs(folders)
    target = folders[0] if len(folders) == 1 else Path()
    try:
        from .page import page
    except ModuleNotFoundError as error:
        raise UserError(
            f"report needs {error.name}, which is missing: pip install -c constraints.txt -e '.[sweeps]'"
        ) from error
    table = Table(runs)
    _write(target / "report.csv", table.csv())
    _write(target / "report.html", page(f"Report of {', '.join(map(str, folders))}", runs, table))
    tests = [(folder, range_test(trials)) for folder, trials in sweeps(runs).items()]
    words = "".join(f"\n{folder}: {test.words}\n" for folder, test in tests if test)
    return table.console() + words, target / "report.html"


def _write(file: Path, text: str) -> None:
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8", newline="")
        beside.replace(file)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise UserError(f"{file} cannot be written: {error.strerror}") from error
