#!/bin/bash
# bench io: every case on one line of JSON with its floor, on one rank and on two, and nothing left behind.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for n in 1 2; do
  "$RANKS" "$n" "$FASCICLE" bench io --nodes 2000 --edges 50000 --json >lines.json 2>log.txt || {
    cat log.txt
    exit 1
  }
  "$PYTHON" - "$n" <<'CHECK'
import json, sys
lines = [json.loads(line) for line in open("lines.json")]
cases = [line["case"] for line in lines]
assert cases == ["write", "read_cold", "read_warm", "load", "checkpoint", "restore"], cases
for line in lines:
    assert line["bench"] == "io" and line["ranks"] == int(sys.argv[1]) and line["edges"] == 50000, line
    assert 0 < line["floor_seconds"] and 0 < line["seconds"] < 60 and line["bytes"] > 50000, line
CHECK
done
left=$(find . -name 'fascicle_bench*')
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
echo "bench io: six cases on 1 and 2 ranks"
