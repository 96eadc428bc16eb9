"""`predictions.npz`, what the test of a classifier predicted, read without torch."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

NAME = "predictions.npz"


def read_predictions(run: Path) -> dict[str, Any] | None:
    """Its arrays: `confusion` `[C, C]` with a row for each true class, and of the most wrong samples `[k]` `true`,
    `predicted`, `confidence`, `loss` and, of pictures, `images` `[k, H, W, C]` uint8. None without a whole file."""
    try:
        with np.load(run / NAME, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None
