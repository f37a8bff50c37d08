#!/bin/bash
# bench halo: every case, with the halo and with the all-gather, one line each; bytes follow from the rows.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$RANKS" 2 "$FASCICLE" bench halo --nodes 600 --edges 6000 --batch 8 --device cpu --json >lines 2>log
"$PYTHON" - <<'PY'
import json
lines = {line["case"]: line for line in map(json.loads, open("lines"))}
wanted = ["near", "near-back", "exchange", "reduce", "there", "back", "all-reduce", "all-gather", "reduce-scatter", "there-all", "back-all"]
assert list(lines) == wanted, list(lines)
for line in lines.values():
    assert line["seconds"] > 0 and line["floor_seconds"] > 0 and line["ranks"] == 2 and line["transport"] == "mpi", line
assert lines["exchange"]["bytes"] < lines["all-gather"]["bytes"] <= 600 * 8 * 4
PY
grep -q "exchange: halo; edges need .* rows of other parts" log
"$RANKS" 1 "$FASCICLE" bench halo --nodes 600 --edges 6000 --batch 8 --device cpu --json >lines 2>log
[ "$(wc -l <lines)" -eq 7 ]
echo "bench halo: 18 lines in order"
