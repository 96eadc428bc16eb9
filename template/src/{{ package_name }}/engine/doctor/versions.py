"""Versions: what the project asks for, and what its packages ask of each other, against what is installed."""

import platform
import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from ..config_folder import PACKAGE
from .finding import INSTALL, Finding

SOURCES = Path(__file__).parents[2]
PYPROJECT = SOURCES.parents[1] / "pyproject.toml"  # none where a wheel was installed
PROJECT = "the project"
IMPORTS_OTHER = re.compile(rb"^\s*(import|from) pytorch_lightning\b", re.MULTILINE)


def check() -> Iterator[Finding]:
    """Reads what distributions say of themselves; imports none of them."""
    from packaging.specifiers import SpecifierSet

    python_range, lines, extras = asked()
    if SpecifierSet(python_range).contains(python := platform.python_version(), prereleases=True):
        yield Finding("python", python)
    else:
        cure = "make a new environment with a Python of that range"
        yield Finding("python", f"{python}, but {PROJECT} needs {python_range}", "failed", cure)
    yield from packages(lines, extras)
    yield from lightnings()


def asked() -> tuple[str, list[str], dict[str, list[str]]]:
    """The range of Python, the requirements, and those of extras: of `pyproject.toml`, or of the installed wheel."""
    if PYPROJECT.exists():
        project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
        return project["requires-python"], project["dependencies"], project.get("optional-dependencies", {})
    return metadata.metadata(PACKAGE)["Requires-Python"], metadata.requires(PACKAGE) or [], {}


def packages(lines: list[str], extras: dict[str, list[str]]) -> Iterator[Finding]:
    """What does not fit the project, an extra that is wholly installed, or a package that one of them needs."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    fitting: list[str] = []
    wanted = [(PROJECT, INSTALL, line) for line in lines]
    for extra, more in extras.items():
        if all(installed(Requirement(line).name) for line in more):
            cure = f"if you use {extra}: pip install -c constraints.txt -e '.[{extra}]'"
            wanted += [(f"the extra {extra}", cure, line) for line in more]
    seen: set[str] = set()
    for asker, cure, line in wanted:  # which grows
        requirement = Requirement(line)
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        name, ranges, version = canonicalize_name(requirement.name), requirement.specifier, installed(requirement.name)
        if version is None or not ranges.contains(version, prereleases=True):
            found = f"{version or 'not installed'}, but {asker} needs {ranges or 'it'}"
            yield Finding(name, found, "failed" if asker == PROJECT else "warning", cure)
            continue
        if asker == PROJECT:
            fitting.append(f"{name} {version}")
        if name not in seen:
            seen.add(name)
            wanted += [(name, INSTALL, line) for line in metadata.requires(name) or []]
    yield Finding("packages", ", ".join(fitting))


def installed(name: str) -> str | None:
    """The version of a distribution."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def lightnings() -> Iterator[Finding]:
    """`lightning` brings `pytorch-lightning` with it: the same classes twice, and neither knows the other's."""
    for path in SOURCES.rglob("*.py"):
        if IMPORTS_OTHER.search(path.read_bytes()):
            found = f"{path} imports pytorch_lightning, whose modules are none to the Trainer of lightning"
            yield Finding("two Lightnings", found, "failed", "import lightning.pytorch there instead")
    own, other = installed("lightning"), installed("pytorch-lightning")
    if own and other and own != other:
        found = f"lightning {own} beside pytorch-lightning {other}"
        yield Finding("two Lightnings", found, "warning", f"pip install pytorch-lightning=={own}")
