"""The reference of a project's configuration, read from the comments of its config files."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

COMMENT = re.compile(r"[ \t]*#[ \t]*(.*)")
PARAMS = "hydra.sweeper.params."
HOMES = {"base": ""}  # groups without a page of their own


@dataclass(frozen=True)
class Value:
    """A value of a config file: its key as the command line takes it, its text, and the comment beside it."""

    key: str
    text: str
    meaning: str


@dataclass
class Option:
    """A config file."""

    group: str
    name: str
    about: str
    is_global: bool
    defaults: list[Any] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    @property
    def builds(self) -> str:
        return next((value.text for value in self.values if value.key.endswith("_target_")), "")


def reference(project: Path) -> dict[str, str]:
    """The pages of the reference by their place on the site: one for every group, one for the commands, an index."""
    (configs,) = project.glob("src/*/configs")
    options = [read(path, configs) for path in sorted(configs.rglob("*.yaml"))]
    groups: dict[str, list[Option]] = {}
    for option in options:
        groups.setdefault(option.group, []).append(option)
    meanings = {value.key: value.meaning for option in reversed(options) for value in option.values if value.meaning}
    (train,) = (option for option in groups[""] if option.name == "train")
    (features,) = (option for option in groups[""] if option.name == "features")
    chosen, decides = choices(train, features, configs)
    decides |= decisions((project / "docs/configuration.md").read_text(encoding="utf-8"))
    command = (project / "pyproject.toml").read_text(encoding="utf-8")
    (command,) = re.findall(r"^\[project\.scripts\]\n(\S+) =", command, re.MULTILINE)

    pages = {}
    for group in chosen:
        shared = [option for option in groups["base"] if option.name == group]
        ordered = sorted(groups[group], key=lambda option: (option.name not in chosen[group], option.name))
        pages[f"reference/{group}.md"] = "\n".join(group_page(group, decides[group], chosen[group], shared + ordered, meanings))
    commands = [*groups.get("commands", []), *(option for option in groups[""] if option not in (train, features))]
    pages["reference/commands.md"] = "\n".join(commands_page(command, sorted(commands, key=lambda o: o.name), meanings))
    pages["reference/index.md"] = "\n".join(index_page(command, [train, features], chosen, decides, groups, meanings))
    return pages


def read(path: Path, configs: Path) -> Option:
    text = path.read_text(encoding="utf-8")
    group = path.parent.relative_to(configs).as_posix().removeprefix(".")
    head = re.match(r"(?:#.*\n)*", text)
    lines = [line.removeprefix("#").strip() for line in head[0].splitlines()] if head else []
    about = " ".join(line for line in lines if not line.startswith("@package"))
    option = Option(group, path.stem, about, is_global="# @package _global_" in text)
    node = yaml.compose(text)
    if isinstance(node, yaml.MappingNode):
        data = yaml.safe_load(text)
        option.defaults = data.get("defaults", [])
        prefix = "" if option.is_global or group in ("", "commands") else f"{path.stem if group == 'base' else group}."
        option.values = [value for value in values(node, text, prefix) if value.key != f"{prefix}defaults"]
    return option


def values(node: yaml.MappingNode, text: str, prefix: str) -> Iterator[Value]:
    for key, value in node.value:
        name = f"{prefix}{key.value}"
        if isinstance(value, yaml.MappingNode) and value.value:
            yield from values(value, text, f"{name}.")
        else:
            comment = COMMENT.match(text, value.end_mark.index)
            yield Value(name, text[value.start_mark.index : value.end_mark.index], comment[1] if comment else "")


def choices(train: Option, features: Option, configs: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The groups in the order of train.yaml: the options chosen by default, and the comment beside them."""
    text = "".join((configs / f"{option.name}.yaml").read_text(encoding="utf-8") for option in (train, features))
    chosen, decides = {}, {}
    for entry in [*train.defaults, *features.defaults]:
        if isinstance(entry, dict):
            ((group, names),) = entry.items()
            chosen[group] = names if isinstance(names, list) else [names]
            comment = re.search(rf"^  - {group}: [^#\n]*# (.*)", text, re.MULTILINE)
            decides[group] = comment[1] if comment else ""
    return chosen, decides


def decisions(page: str) -> dict[str, str]:
    """What each group decides, from the table of the guide."""
    page = page.replace("](", "](../guide/")
    found = {}
    for names, decides in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]*) \|", page, re.MULTILINE):
        found |= dict.fromkeys(re.findall(r"\w+", names), decides)
    return found


def group_page(
    group: str, decides: str, chosen: list[str], options: list[Option], meanings: dict[str, str]
) -> Iterator[str]:
    yield from (f"# {group}", "")
    yield from (f"{decides[0].upper()}{decides[1:]}.", "")
    names = [name for name in chosen if name]
    yield from (f"By default: {', '.join(f'`{name}`' for name in names)}." if names else "By default: none.", "")
    for option in options:
        if option.group == "base":
            yield from (f"## Every `{group}`", "", option.about, "")
        else:
            yield from (f"## `{group}={option.name}` {{ #{option.name} }}", "", option.about, "")
        yield from composition(option)
        yield from table(option, meanings)


def composition(option: Option) -> Iterator[str]:
    """What an option builds, takes over and chooses, a sentence each."""
    if option.builds and not option.is_global:
        targets = [value.text for value in option.values if value.key.endswith("_target_")]
        yield from (f"Builds {' and '.join(f'`{target}`' for target in targets)}.", "")
    parts, overridden = [], []
    for entry in option.defaults:
        if isinstance(entry, dict):
            ((group, name),) = entry.items()
            overridden.append(f"`{group.removeprefix('override ').lstrip('/')}={name}`")
        elif entry.startswith("/base/"):
            yield from ("It has the keys of every one, from above, and these.", "")
        elif entry != "_self_":
            parts.append(f"`{entry.partition('@')[0].rpartition('/')[2]}`")
    if parts:
        yield from (f"Takes over: {', '.join(parts)}.", "")
    if overridden:
        yield from (f"Chooses {', '.join(overridden)}.", "")


def table(option: Option, meanings: dict[str, str]) -> Iterator[str]:
    """The keys of an option; a sweep's parameters are another table."""
    shown = [value for value in option.values if not re.search(r"(^|\.)_(target|partial)_$", value.key)]
    keys = [value for value in shown if not value.key.startswith(PARAMS)]
    tried = [value for value in shown if value.key.startswith(PARAMS)]
    if keys:
        yield from ("| key | default | meaning |", "|---|---|---|")
        for value in keys:
            yield row(value, meanings)
        yield ""
    if tried:
        yield from ("| tried | values |", "|---|---|")
        yield from (f"| `{value.key.removeprefix(PARAMS)}` | `{value.text}` |" for value in tried)
        yield ""


def row(value: Value, meanings: dict[str, str]) -> str:
    """A row of a table of keys; a key without a comment means what it means elsewhere, or what it is taken from."""
    source = re.fullmatch(r"\$\{([\w.]+)\}", value.text)
    meaning = value.meaning or (f"that of `{source[1]}`" if source else meanings.get(value.key, ""))
    return f"| `{value.key}` | `{value.text}` | {html.escape(meaning, quote=False)} |"


def commands_page(command: str, options: list[Option], meanings: dict[str, str]) -> Iterator[str]:
    yield from ("# Commands", "")
    yield from (f"What each command reads beside, or in place of, the keys of `{command} train`.", "")
    for option in options:
        yield from (f"## `{command} {option.name}` {{ #{option.name} }}", "", option.about, "")
        if "train" in option.defaults:
            yield from ("It takes every key of `train`, and these.", "")
        option.values = [value for value in option.values if not value.key.startswith("hydra.")]
        yield from table(option, meanings)


def index_page(
    command: str,
    top: list[Option],
    chosen: dict[str, list[str]],
    decides: dict[str, str],
    groups: dict[str, list[Option]],
    meanings: dict[str, str],
) -> Iterator[str]:
    yield from ("# Reference", "")
    yield from (f"`{command} train group=option key=value` chooses options and changes values.", "")
    yield from ("## Groups", "", "| group | options | what it decides |", "|---|---|---|")
    for group, names in chosen.items():
        options = (
            f"**`{option.name}`**" if option.name in names else f"`{option.name}`" for option in groups[group]
        )
        yield f"| [{group}]({group}.md) | {', '.join(options)} | {decides[group]} |"
    yield from ("", "Bold: by default.", "", "## Keys of `train`", "")
    for option in top:
        option.values = [value for value in option.values if not value.key.startswith("hydra.")]
    yield from ("| key | default | meaning |", "|---|---|---|")
    for value in (value for option in top for value in option.values):
        yield row(value, meanings)
    yield from ("", "The other commands have [keys of their own](commands.md).", "")
