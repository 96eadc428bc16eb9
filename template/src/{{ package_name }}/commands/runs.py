"""List the runs, their scores and how to go on with them.

    {prog}              the runs below runs/
    {prog} runs/wide    those below another folder

A run is finished, running, interrupted, failed, or killed: then nothing could say any more how it ended.
"""

import sys
from pathlib import Path

from ..engine.errors import UserError
from ..engine.run_table import run_table


def main() -> None:
    words = sys.argv[1:]
    if len(words) > 1 or any(word.startswith("-") for word in words):
        raise UserError(f"runs takes the folder that holds the runs, and nothing else (got {' '.join(words)!r})")
    print(run_table(Path(*words or ["runs"])), end="", flush=True)
