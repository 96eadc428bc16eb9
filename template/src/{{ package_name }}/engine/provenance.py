"""What a run was made with: versions, the commit, the command."""

import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

LIBRARIES = ("torch", "lightning", "torchmetrics", "hydra-core", "numpy")


def provenance() -> dict[str, Any]:
    """Versions of Python and the libraries, Git commit of the project, command line."""
    program, *words = sys.argv
    return {
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in LIBRARIES},
        "git": _commit(),
        "command": [*program.split(), *words],
    }


def _commit() -> dict[str, Any] | None:
    """The commit, and whether a file was changed or added since; None where Git does not track this package."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)
        return {"commit": git("rev-parse", "HEAD"), "changed": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return None
