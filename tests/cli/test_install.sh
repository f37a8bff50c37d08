#!/bin/bash
# `cmake --install` into a fresh prefix gives a program that runs, its job files and its documentation.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$(dirname "$FASCICLE")" --prefix "$work" >/dev/null
"$work/bin/fascicle" --version >/dev/null
for file in share/fascicle/jobs/simulate.sbatch share/fascicle/jobs/analysis/raster.py share/doc/fascicle/README.md; do
  [ -s "$work/$file" ] || {
    echo "test_install: $file was not installed"
    exit 1
  }
done
found=$(unset FASCICLE && . "$work/share/fascicle/jobs/env.sh" && echo "$FASCICLE")
[ "$(realpath "$found")" = "$work/bin/fascicle" ] || {
  echo "test_install: env.sh found '$found'"
  exit 1
}
