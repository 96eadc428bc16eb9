#!/bin/sh
# Builds the site in build/docs/site: gathers its pages, then lets Zensical render them and refuse links to nothing.
# Called by `make docs`, which sets BIN to the folder of the tools.
set -eu
cd "$(dirname "$0")/.."
"$BIN/python" scripts/site_pages.py
"$BIN/zensical" build --strict --config-file build/docs/zensical.toml
echo "The site lies in build/docs/site. To read it: $BIN/python -m http.server --directory build/docs/site"
