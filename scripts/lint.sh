#!/bin/sh
# Checks the files of this repository, then two rendered projects: the default one, and one with every other answer.
# Called by `make lint`, which sets BIN to the folder of the tools.
set -eu
cd "$(dirname "$0")/.."
checkout=$PWD

echo "The repository"
"$BIN/ruff" format --check --quiet .
"$BIN/ruff" check --quiet .
git ls-files -z '*.yml' '*.yaml' | xargs -0 "$BIN/yamllint" --strict
git ls-files -z '*.md' | xargs -0 "$BIN/pymarkdown" --config pyproject.toml scan

check_render() {
    name=$1
    shift
    echo "A project with ${*:-the default answers}"
    rm -rf "build/lint/$name"
    "$BIN/python" -W ignore -m copier copy --quiet --defaults --vcs-ref HEAD "$@" "$checkout" "build/lint/$name"
    (
        cd "build/lint/$name"
        "$BIN/ruff" format --check --quiet --no-cache .
        "$BIN/ruff" check --quiet --no-cache .
        "$BIN/pyrefly" check --summary=none --python-interpreter-path "$BIN/python"
        find . \( -name '*.yml' -o -name '*.yaml' \) -exec "$BIN/yamllint" --strict --config-file "$checkout/.yamllint.yaml" {} +
        find . -name '*.md' -exec "$BIN/pymarkdown" --config "$checkout/pyproject.toml" scan {} +
    )
}

check_render default
check_render other -d package_name=z9 -d project_name='*Z* "9" {{ x }}' -d description='<b> & \ # 100 %' \
    -d license=proprietary -d logger=mlflow -d ci=gitlab -d environment=conda -d 'features=[]'
