"""Compare runs: a table, `report.csv`, and `report.html` with charts.

    {prog}                      the runs below runs/
    {prog} runs/wide            those below another folder, such as a sweep's
    {prog} runs/wide runs/deep  those of several folders; the files are written into the current one

Runs that differ only in seed or fold are one line, with mean and standard deviation. Runs that still train, or did not
finish, are read as far as they came.
"""

import sys
from pathlib import Path

from ..engine.errors import UserError
from ..engine.report.report import report


def main() -> None:
    words = sys.argv[1:]
    if options := [word for word in words if word.startswith("-")]:
        raise UserError(f"report takes the folders that hold the runs, and nothing else (got {options[0]!r})")
    table, page = report([Path(word) for word in words or ["runs"]])
    print(f"{table}\nreport     {page}", flush=True)
