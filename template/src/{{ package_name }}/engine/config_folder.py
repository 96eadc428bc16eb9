"""What the folders `commands/` and `configs/` offer, read as text: nothing is imported, nothing is composed."""

import difflib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = __name__.partition(".")[0]
SCRIPT = PACKAGE.replace("_", "-")
TRAINS = "train"  # the command whose jobs may run on several processes
COMMANDS = Path(__file__).parents[1] / "commands"
CONFIGS = Path(__file__).parents[1] / "configs"

_KEY = re.compile(r"( *)([A-Za-z_]\w*):(?: +(.*?))?(?: +# *(.*))?$")


def command_names() -> list[str]:
    """The commands, alphabetically: the files of `commands/`."""
    return sorted(path.stem for path in COMMANDS.glob("[!_]*.py"))


def config_file(command: str) -> Path | None:
    """What Hydra composes a command's arguments from, if it does.

    Commands that choose from no group have their file in `configs/commands/`, where Hydra sees no group either:
    `evaluate checkpoint=FILE` would otherwise mean an option of the group `checkpoint`.
    """
    for folder in (CONFIGS, CONFIGS / "commands"):
        if (path := folder / f"{command}.yaml").is_file():
            return path
    return None


def is_group(name: str) -> bool:
    """Whether `configs/` has a folder of that name."""
    return bool(name) and (CONFIGS / name).is_dir()


@cache
def groups(command: str) -> dict[str, list[str]]:
    """The groups that a command can choose from, each with the options that it takes by default."""
    path = config_file(command)
    return dict(_defaults(path)) if path else {}


def _defaults(path: Path) -> Iterator[tuple[str, list[str]]]:
    import yaml  # pyrefly: ignore[untyped-import]

    content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    for entry in content.get("defaults", []):
        if isinstance(entry, str):
            if (inner := path.parent / f"{entry}.yaml").is_file():
                yield from _defaults(inner)
            continue
        ((group, chosen),) = entry.items()
        group = group.removeprefix("optional ").partition("@")[0].lstrip("/")
        if is_group(group):
            yield group, [chosen] if isinstance(chosen, str) else chosen or []


def options(group: str) -> dict[str, str]:
    """The options of a group, each with the first comment line of its file."""
    return {path.stem: _first_comment(path) for path in sorted((CONFIGS / group).glob("*.yaml"))}


def cure_for_none(group: str) -> str:
    """What to type instead of nothing at all."""
    choices = options(group)
    nothing = next((option for option in ("none", "off") if option in choices), None)
    return f"type {group}={nothing}" if nothing else f"leave {group} out, or choose from {', '.join(choices)}"


def _first_comment(path: Path) -> str:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") and not line.startswith("# @package"):
            return line.lstrip("# ")
    return ""


def keys(path: Path) -> dict[str, str]:
    """The keys that a config file sets itself, as `seeding.seed=42`, each with the comment beside it or above it."""
    found: dict[str, str] = {}
    above: list[str] = []
    parents: list[tuple[int, str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("#"):
            above.append(line.lstrip("# "))
            continue
        if match := _KEY.match(line):
            indent, name, value, beside = match.groups(default="")
            parents = [parent for parent in parents if parent[0] < len(indent)] + [(len(indent), name)]
            if value and parents[0][1] not in ("defaults", "hydra"):
                found[f"{'.'.join(name for _, name in parents)}={value}"] = beside or " ".join(above)
        above = []
    return found


def nearest(word: str, names: Iterable[str]) -> list[str]:
    """The names that are spelled almost like `word`, at most three."""
    return difflib.get_close_matches(word, sorted(set(names)), n=3, cutoff=0.6)


def did_you_mean(names: list[str]) -> str:
    """` Did you mean a or b?`, or nothing."""
    return f" Did you mean {' or '.join(names)}?" if names else ""
