#!/bin/bash
# bench recurrence: the cases of every graph, as JSON lines with the promised members, on one rank and on two, plain and fast.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
shape=(--nodes 300 --edges 6000 --batch 8 --steps 3 --microsteps 2 --threads 1)

FASCICLE_SIMD=plain "$FASCICLE" bench recurrence "${shape[@]}" --json >"$work/1"
"$RANKS" 2 "$FASCICLE" bench recurrence "${shape[@]}" --model modular --json >"$work/2"
"$FASCICLE" bench recurrence "${shape[@]}" --model lognormal >"$work/3"
"$RANKS" 2 "$FASCICLE" bench recurrence "${shape[@]}" --model lognormal --replicas 2 --json >"$work/4"
[ "$(grep -c '"batch":8,"ranks":2,.*"replicas":2' "$work/4")" = 4 ]
[ "$(grep -cE '^recurrence +(forward|backward|total|train_step) ' "$work/3")" = 4 ]

# The same graph from a file, drawn once for many benches; ordered, and with another halo.
"$FASCICLE" generate --nodes 300 --edges 6000 --no-order --output "$work/g.h5" >/dev/null
"$FASCICLE" generate --nodes 300 --edges 6000 --model modular --parts 2 --output "$work/m.h5" >/dev/null
"$RANKS" 2 "$FASCICLE" bench recurrence --graph "$work/g.h5" --steps 2 --batch 4 --threads 1 --seconds 0.1 --replicas 2 --json >"$work/5"
"$RANKS" 2 "$FASCICLE" bench halo --graph "$work/m.h5" --batch 4 --threads 1 --json >"$work/6"
[ "$(grep -c '"nodes":300,"edges":6000,"batch":4,"ranks":2,.*"graph":"lognormal"' "$work/5")" = 4 ]
[ "$(grep -c '"edges":6000,.*"graph":"modular, ordered"' "$work/6")" = 11 ]

"$PYTHON" - "$work" <<'PY'
import json, sys
lines = [[json.loads(text) for text in open(f"{sys.argv[1]}/{n}")] for n in (1, 2)]
assert [len(x) for x in lines] == [16, 4], lines
members = "bench case device nodes edges batch ranks seconds floor_seconds over_floor bytes peak_bytes commit".split()
for line in lines[0] + lines[1]:
    assert all(member in line for member in members), line
    assert line["seconds"] > 0 and line["floor_seconds"] > 0 and line["peak_bytes"] >= line["bytes"] > 0, line
    assert abs(line["over_floor"] - line["seconds"] / line["floor_seconds"]) < 1e-6 * line["over_floor"]
assert [x["case"] for x in lines[1]] == ["forward", "backward", "total", "train_step"]
assert {x["graph"] for x in lines[0]} == {"lognormal", "lognormal, ordered", "modular", "modular, ordered"}
assert lines[0][0]["simd"] == "plain" and lines[1][0]["ranks"] == 2
PY
echo "bench recurrence: 20 lines in order"
