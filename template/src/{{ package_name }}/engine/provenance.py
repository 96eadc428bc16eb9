"""What a run was made with: versions, the commit, the command."""

import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

LIBRARIES = ("torch", "lightning", "torchmetrics", "hydra-core", "numpy")


def provenance() -> dict[str, Any]:
    """Versions of Python and the libraries, Git commit of the project (None outside a repository), command line."""
    return {
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in LIBRARIES},
        "git": _commit(Path(__file__).parent) or _commit(Path.cwd()),
        "command": sys.argv,
    }


def _commit(directory: Path) -> dict[str, Any] | None:
    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=directory, capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()

    try:
        commit = git("rev-parse", "HEAD")
        return {"commit": commit, "changed": bool(git("status", "--porcelain", "--untracked-files=no"))}
    except (OSError, subprocess.SubprocessError):
        return None
