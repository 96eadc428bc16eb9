"""Optional features: folders of the engine that are there only in projects that chose them."""

from importlib import import_module
from pathlib import Path
from typing import Any


def feature(name: str, module: str) -> Any:
    """A module of the feature's folder, or None in a project without the feature."""
    if not (Path(__file__).parent / name / f"{module}.py").exists():
        return None
    return import_module(f".{name}.{module}", __package__)
