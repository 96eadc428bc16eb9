"""Quotes the values of path options, so that a path with `,` `(` `=` `{` or blanks reaches Hydra as it was typed."""

import re
from pathlib import Path

_PATH_OPTION = re.compile(
    r"(\+{0,2}(?:run|checkpoint|resume|resume_sweep|init_from|output|data\.root|data\.index|paths\.\w+|hydra\.(?:run|sweep)\.dir)=)(.+)",
    re.DOTALL,
)
# What Hydra reads as this very text without quotes. A number is not: a directory `2025_01` would become 202501.
_PLAIN = re.compile(r"(?:[A-Za-z~]|[./]+[A-Za-z_])[\w./-]*")


def quote_path_options(words: list[str]) -> list[str]:
    """The words of a command line with the paths in them quoted where Hydra would read more than a text."""
    return [_quoted(word) for word in words]


def _quoted(word: str) -> str:
    match = _PATH_OPTION.fullmatch(word)
    if match is None or _PLAIN.fullmatch(match[2]) or match[2][0] in "'\"[" or "${" in match[2]:
        return word
    # Hydra's escapes: backslashes count only before a quote, and there they double.
    text = re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), match[2])
    return f"{match[1]}'{text}'"


def unquoted(value: str) -> str:
    """The text that a value stands for, whether it was typed with Hydra's quotes or without."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1].replace(f"\\{value[0]}", value[0])
    return value


def short(path: str | Path) -> str:
    """A path below the current directory without it, any other as it is."""
    path = Path(path)
    return str(path.relative_to(Path.cwd()) if Path.cwd() in path.parents else path)
