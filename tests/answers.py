"""Every pair of answers to `copier.yml`, and the free text that tries hardest to break a file."""

from pathlib import Path
from typing import Any

import yaml
from allpairspy import AllPairs

ROOT = Path(__file__).parents[1]
QUESTIONS: dict[str, dict[str, Any]] = {
    name: question
    for name, question in yaml.safe_load((ROOT / "copier.yml").read_text(encoding="utf-8")).items()
    if not name.startswith("_") and question.get("when") is not False
}

HOSTILE = {
    "project_name": (
        r"""--- "Zell" 'Zähler' \ \" {{ 7*7 }} {% raw %} {# #} %s 100% # ${HOME} \${a} $(ls) `x` <b>&amp; """
        """*_~| ![a](b) 図像🧪"""
    ),
    "description": (
        '- # 1. "It\'s"\n\n```\r\n\t<!-- {{ x }} --> \\N \\u0041 C:\\new \'a\' """ %(x)s: & [y]: ~ é 🧪\n===\n'
    ),
    "user_name": r"""O'Brien "Bob" \ {{ 7*7 }} (x), <y>; # % $z 🧪 Ünal""",
    "user_email": "o'brien+{x}%#$&@example.com",
}
# A question without choices needs values here; the first one leaves the default alone.
TEXTS: dict[str, list[Any]] = {
    "project_name": [None, HOSTILE["project_name"]],
    "package_name": [None, "z9", "abcdefghij_klmnopqrst_uvwxyz_0"],
    "description": [None, HOSTILE["description"]],
    "user_name": [None, HOSTILE["user_name"]],
    "user_email": [None, HOSTILE["user_email"]],
}


def values(name: str) -> list[Any]:
    """The answers to a question that are worth rendering; None is the default."""
    question = QUESTIONS[name]
    if "choices" not in question:
        return TEXTS[name]
    choices = question["choices"]
    found = list(choices.values()) if isinstance(choices, dict) else list(choices)
    if question.get("multiselect"):
        return [[], found, *([choice] for choice in found)]
    return found


def all_pairs() -> list[dict[str, Any]]:
    """Few sets of answers in which any two answers to two questions meet."""
    names = sorted(QUESTIONS, key=lambda name: len(values(name)), reverse=True)  # in this order fewer sets are needed
    rows = AllPairs([values(name) for name in names])
    return [{name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows]


PAIRS = all_pairs()
FAR_APART: list[dict[str, Any]] = [
    {"package_name": "z9", "license": "proprietary", "logger": "mlflow", "ci": "gitlab", "environment": "conda"},
    {**HOSTILE, "package_name": "abcdefghij_klmnopqrst_uvwxyz_0", "license": "Apache-2.0", "logger": "wandb"},
    {"project_name": "3D nets", "license": "BSD-3-Clause", "logger": "csv", "ci": "none", "features": []},
]


def shown(text: str) -> str:
    """Free text as a file shows it: on one line."""
    return " ".join(text.split())
