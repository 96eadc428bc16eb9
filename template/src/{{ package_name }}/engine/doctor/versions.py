"""Versions: what the project asks for against what is installed."""

import platform
import re
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from ..config_folder import PACKAGE
from .finding import INSTALL, Finding

SOURCES = Path(__file__).parents[2]
IMPORTS_OTHER = re.compile(r"^\s*(import|from) pytorch_lightning\b", re.MULTILINE)


def check() -> list[Finding]:
    """Reads what the installed distributions say of themselves, and what the project imports; imports nothing."""
    installed = {_canonical(found.name): found.version for found in metadata.distributions()}
    importing = [path for path in SOURCES.rglob("*.py") if IMPORTS_OTHER.search(path.read_text("utf-8"))]
    lightnings = judge_lightnings(installed, importing)
    try:
        asked = metadata.metadata(PACKAGE)["Requires-Python"], metadata.requires(PACKAGE) or []
    except metadata.PackageNotFoundError:
        found = f"{PACKAGE} is not installed, so that nothing says which versions it needs"
        return [Finding("project", found, "warning", INSTALL), *lightnings]
    return [*judge(*asked, platform.python_version(), installed), *lightnings]


def judge(python_range: str, asked: Iterable[str], python: str, installed: Mapping[str, str]) -> list[Finding]:
    """Python and packages against their ranges; what only extras ask for matters where it is installed.

    Args:
        python_range: Such as `>=3.11,<3.14`.
        asked: Requirements as in PEP 508.
        python: The version of Python.
        installed: Versions by canonical name.
    """
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

    findings: list[Finding] = []
    fitting = [f"python {python}"]
    if not SpecifierSet(python_range).contains(python, prereleases=True):
        cure = "make a new environment with a Python of that range"
        findings = [Finding("python", f"{python}, but the project needs {python_range}", "failed", cure)]
    for requirement in map(Requirement, asked):
        name, ranges = requirement.name, requirement.specifier
        is_needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        version = installed.get(_canonical(name))
        if version is not None and ranges.contains(version, prereleases=True):
            fitting += [f"{name} {version}"] if is_needed else []
        elif is_needed:
            found = f"{version or 'not installed'}, but the project needs {ranges}"
            findings.append(Finding(name, found, "failed", INSTALL))
        elif version is not None and "extra ==" in str(requirement.marker):
            found = f"{version}, but where {requirement.marker} the project needs {ranges}"
            findings.append(Finding(name, found, "warning", "if you use that extra, install it again"))
    return [Finding("packages", ", ".join(fitting)), *findings]


def judge_lightnings(installed: Mapping[str, str], importing: Iterable[Path]) -> list[Finding]:
    """`lightning` brings `pytorch-lightning` with it: the same classes twice, and neither knows the other's."""
    own, other = installed.get("lightning"), installed.get("pytorch-lightning")
    findings = [
        Finding(
            "two Lightnings",
            f"{path} imports pytorch_lightning, whose modules are none to the Trainer of lightning",
            "failed",
            "import lightning.pytorch there instead",
        )
        for path in importing
    ]
    if own and other and own != other:
        found = f"lightning {own} beside pytorch-lightning {other}"
        findings.append(Finding("two Lightnings", found, "warning", f"pip install pytorch-lightning=={own}"))
    return findings


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
