#!/bin/bash
# tests/bench.sh [FILE.jsonl]: every CPU benchmark of the README's table in one run, on an idle machine. Appends the lines, with date and processor,
# to FILE (default: tests/cpu_results.jsonl). With TORCH=1 also PyTorch's sparse CSR loop on the same cores (installs torch into a scratch place).
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=../jobs/env.sh
. jobs/env.sh
results=${1:-tests/cpu_results.jsonl}
cores=$(nproc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
read -r load _ </proc/loadavg
echo "load average before: $load"

bench() { "$FASCICLE" bench "$@" --device cpu --json 2>/dev/null >>"$work/lines"; }
bench lif --threads 1
for model in lif_delta lif_exp psc_exp psc_alpha; do bench lif --model "$model" --threads 1; done
bench lif --model lif_exp --threads "$cores" --nodes 166000 --edges 25600000
bench recurrence --threads "$cores" --nodes 5000 --edges 524324
for batch in 1 4 8 16 24 32 40; do bench recurrence --threads 1 --nodes 5000 --edges 524324 --model lognormal --batch "$batch"; done
mpirun -q -n 2 --bind-to none "$FASCICLE" bench io --json 2>/dev/null >>"$work/lines"
if [ "${TORCH:-0}" = 1 ]; then
  /usr/bin/python3 tests/bench/torch_sparse.py --install
  /usr/bin/python3 tests/bench/torch_sparse.py --threads "$cores"
fi

python3 - "$work/lines" "$results" "$load" <<'PY'
import datetime, json, platform, sys

lines, results, load = sys.argv[1:]
processor = next((l.split(":", 1)[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.machine())
date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
print(f"{'bench':11} {'case':14} {'graph':20} {'ranks':>5} {'threads':>7} {'measured ms':>12} {'floor ms':>10} {'ratio':>6}")
with open(results, "a") as out:
    for text in open(lines):
        line = json.loads(text)
        line.update(date=date, processor=processor, load_before=float(load))
        out.write(json.dumps(line) + "\n")
        floor = line.get("floor_seconds") or 0
        print(f"{line['bench']:11} {line['case']:14} {line.get('graph') or line.get('model') or '':20} {line['ranks']:5} {line['threads']:7} "
              f"{line['seconds'] * 1e3:12.4f} {floor * 1e3:10.4f} {line['seconds'] / floor if floor else float('nan'):6.2f}")
PY
