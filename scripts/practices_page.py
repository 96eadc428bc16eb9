"""The page of practices: what a project's table says of each, and why, from docs/practices.md."""

import re


def rows(markdown: str) -> dict[str, list[str]]:
    """The rows of all tables whose first cell is the id of a practice, by id, without it."""
    found = re.findall(r"^\| (P\d\d) \|(.*)\|$", markdown, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in found}


def practices(reasons: str, table: str) -> str:
    """Puts the reasons into the sections of a project's table, a heading for every practice."""
    introduction = re.split(r"^\| id ", reasons, maxsplit=1, flags=re.MULTILINE)[0].rstrip()
    why = {name: cells[0] for name, cells in rows(reasons).items()}
    lines = [introduction, ""]
    for line in table.splitlines():
        if line.startswith("## "):
            lines += [line, ""]
        for name, (practice, switch, files, tests) in rows(line).items():
            lines += [f"### {name}: {practice} {{ #{name.lower()} }}", "", why[name], ""]
            lines += [f"- {label}: {cell}" for label, cell in (("Switch", switch), ("File", files), ("Test", tests)) if cell]
            lines += [""]
    return "\n".join(lines)
