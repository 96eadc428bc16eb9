"""Findings on a terminal, in a file, and for other programs."""

import json
import sys
from collections import Counter
from dataclasses import asdict
from importlib.util import find_spec

from .finding import Finding

COLOURS = {"ok": "green", "note": "cyan", "warning": "yellow", "failed": "bold red"}
WIDTHS = (7, 15)  # of status and name


def show(finding: Finding) -> None:
    """Prints one finding: in colour and wrapped on a terminal, as one or two plain lines elsewhere."""
    cure = f"→ {finding.cure}" if finding.cure else ""
    if not sys.stdout.isatty() or find_spec("rich") is None:
        start = f"{finding.status:<{WIDTHS[0]}}  {finding.name:<{WIDTHS[1]}}  "
        sys.stdout.write(f"{start}{finding.found}\n" + (f"{' ' * len(start)}{cure}\n" if cure else ""))
        sys.stdout.flush()  # who pipes it into a file may follow that
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    for width in (*WIDTHS, None):
        table.add_column(width=width, overflow="fold")
    table.add_row(Text(finding.status, COLOURS[finding.status]), finding.name, Text(finding.found))
    if cure:
        table.add_row("", "", Text(cure, "bold"))
    Console().print(table)


def as_json(findings: list[Finding]) -> str:
    """One object: how many failed and warned, and the findings."""
    counts = Counter(finding.status for finding in findings)
    content = {"failed": counts["failed"], "warnings": counts["warning"], "findings": [*map(asdict, findings)]}
    return json.dumps(content, indent=2, ensure_ascii=False)


def summary(findings: list[Finding]) -> str:
    """Such as `1 failed, 2 warnings`."""
    counts = Counter(finding.status for finding in findings)
    return f"{counts['failed']} failed, {counts['warning']} warning{'' if counts['warning'] == 1 else 's'}"
