#!/bin/sh
# Makes a project from this checkout in the directory $1, installs it and trains it; more arguments go to Copier.
# Called by `make demo`, which sets BIN to the folder of the tools and ARGS to what is passed on to `train`.
set -eu
destination=$1
shift
checkout=$(cd "$(dirname "$0")/.." && pwd -P) # an absolute path: Copier records where a project came from
marker=.made-by-make-demo

if [ -e "$destination" ] && [ -n "$(ls -A "$destination")" ] && [ ! -e "$destination/$marker" ]; then
    echo "$destination holds something that make demo did not make: type make demo DEST=another/directory" >&2
    exit 1
fi
mkdir -p "$destination"
touch "$destination/$marker"
# The next demo starts anew, but keeps the environment and the runs.
find "$destination" -mindepth 1 -maxdepth 1 ! -name "$marker" ! -name .venv ! -name runs -exec rm -rf {} +

no_updates=
if ! git -C "$checkout" rev-parse --verify --quiet HEAD >/dev/null 2>&1; then
    no_updates="this copy of the template has no Git history"
elif [ -n "$(git -C "$checkout" status --porcelain)" ]; then
    no_updates="this checkout has changes that are not committed"
elif [ "$(git -C "$checkout" rev-parse --is-shallow-repository)" = true ]; then
    no_updates="this checkout is a shallow clone (git fetch --unshallow completes it)"
fi

echo "Making the project in $destination"
"$BIN/python" -W ignore -m copier copy --quiet --defaults --overwrite --vcs-ref HEAD "$@" "$checkout" "$destination"

echo "Installing it (some minutes the first time)"
unset MAKEFLAGS MFLAGS MAKEOVERRIDES VENV # the project's Makefile has variables of the same names
make --silent -C "$destination" install PYTHON="$BIN/python"

make --silent -C "$destination" train ARGS="$ARGS"
"$BIN/python" - "$destination" <<'END'
import json, os, subprocess, sys
from pathlib import Path

import yaml

project = Path(sys.argv[1])
answers = yaml.safe_load((project / ".copier-answers.yml").read_text(encoding="utf-8"))
command = answers["package_name"].replace("_", "-")
records = [(json.loads(path.read_text(encoding="utf-8")), path) for path in project.glob("runs/*/*/run.json")]
record, path = max(records, key=lambda found: found[0]["started"])
report = ""
if any(project.glob("src/*/commands/report.py")):
    program = [project.resolve() / ".venv/bin/python", "-m", answers["package_name"], "report"]
    environment = {**os.environ, "PYTHONPATH": "src"}
    subprocess.run(program, cwd=project, env=environment, check=True, stdout=subprocess.DEVNULL)
    report = f"\nReport         {project / 'runs/report.html'}"
print(f"""
Test accuracy  {record["metrics"]["test/accuracy"]:.4f}
Run directory  {path.parent}{report}

Next:
  cd {project}
  .venv/bin/{command} evaluate run=latest
  .venv/bin/{command} train optimizer=sgd scheduler=onecycle""")
END
if [ -n "$no_updates" ]; then
    echo
    echo "This project cannot be updated by copier update: $no_updates."
fi
