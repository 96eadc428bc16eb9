"""Check this machine by arithmetic: versions, devices, processes, memory, disk.

    {prog}                 everything, with the disk of runs/
    {prog} /scratch/runs   with the disk of another folder
    {prog} --json          one JSON object, for other programs

Every device computes, and the results are compared with float64. What is wrong stands there with its cure. The exit
code is 1 where something failed, 0 where all is well or only warned about.
"""

import sys
from pathlib import Path

from ..engine.errors import UserError


def main() -> int:
    words = [word for word in sys.argv[1:] if word != "--json"]
    if len(words) > 1 or any(word.startswith("-") or "=" in word for word in words):
        raise UserError(f"doctor takes the folder of the runs, --json, and nothing else (got {' '.join(words)!r})")
    from ..engine.doctor.examine import examine
    from ..engine.doctor.printing import as_json, show, summary

    is_json = "--json" in sys.argv
    findings = []
    for finding in examine(Path(*words or ["runs"])):
        findings.append(finding)
        if not is_json:
            show(finding)
    print(as_json(findings) if is_json else summary(findings), flush=True)
    return int(any(finding.status == "failed" for finding in findings))
