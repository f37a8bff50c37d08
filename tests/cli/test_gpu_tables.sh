#!/bin/bash
# What is made of measured GPU lines: the table with its ratios, and a machine's constants that `plan` takes and that say again what they came from.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results=$SOURCE/tests/gpu_results.jsonl machine=$work/machine.json

"$PYTHON" "$SOURCE/tests/gpu/bars.py" "$results" --commit 8c76f8a >"$work/bars"
grep -Eq '^2 replicas, strong, 24.7 M, window +95.37 ms +57.87 ms +82.4 % +>= 85 % \(92\) +MISSED' "$work/bars"
grep -Eq '^2 replicas, weak, 24.7 M, window +95.37 ms +95.70 ms +99.7 % .* met ' "$work/bars"
grep -Eq '^2 parts, peer, 24.7 M, window .* not measured' "$work/bars"

cp "$SOURCE/jobs/conf/machine_h200.json" "$machine"
sed -i 's/\("backward_row_seconds": {"value": \)[^,]*/\11e-9/; s/\("lif_event_seconds": {"value": \)[^,]*/\10/' "$machine"
plan() {
  "$FASCICLE" plan --nodes 211577 --edges 24678466 --machine "$machine" --json "$@" 2>/dev/null
}
before=$(plan --job train)
"$PYTHON" "$SOURCE/jobs/fit_machine.py" --machine "$machine" --results "$results" --commits 8c76f8a >/dev/null
"$PYTHON" - "$before" "$(plan --job train)" "$(plan --job simulate)" <<'PY'
import json, sys
before, train, simulate = map(json.loads, sys.argv[1:])
assert before["window_seconds"] > 0.5 and abs(train["window_seconds"] / 0.09537 - 1) < 0.03, (before["window_seconds"], train["window_seconds"])
assert abs(simulate["step_seconds"] / 9.39e-6 - 1) < 0.03, simulate["step_seconds"]
PY
grep -q '"measured_at": \["8c76f8a4fca6"\]' "$machine"
bash "$SOURCE/tests/run_gpu.sh" 1 2>/dev/null && exit 1
echo "GPU lines: table, ratios, constants"
