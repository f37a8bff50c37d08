#!/bin/bash
# run_gpu_ranks.sh R [BUILD_FOLDER] [RESULTS]: what needs R GPUs of one host, in one call; tests/run_gpu.sh R calls it. Benches,
# whose lines are appended to RESULTS, then the checks of tests/gpu/ranks.py, which CHECKS (60) seconds are kept for and
# RANKS_OPTIONS are handed to. SECONDS_LEFT (540) bounds the whole: what no longer fits is named and left out.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ranks=$1
build=${2:-$here/../build}
results=${3:-$here/gpu_results.jsonl}
limit=${SECONDS_LEFT:-540}
[ -d "$build" ] && PATH=$build:$build/tests:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=${OMP_NUM_THREADS:-8}
failed=0
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
date=$(date -u +%Y-%m-%d)
: >all

bench() { # NEEDS ARGS...: a bench on all ranks, left out when fewer than NEEDS seconds remain
  local needs=$1
  shift
  if ((SECONDS + needs > limit)); then
    echo "left out: bench $*: $((limit - SECONDS)) s remain"
    return
  fi
  mpirun -q --bind-to none -n "$ranks" fascicle bench "$@" --device cuda --json 2>log >lines || { cat log; failed=1; }
  sed "s/^{/{\"gpu\": \"$gpu\", \"date\": \"$date\", /" lines >>all
}

checks=${CHECKS:-60} # seconds kept for the checks at least
bench 6 lif --delays 4:8 --steps 2000
bench 6 lif --delays 1:8 --steps 2000
bench 10 lif --delays 4:8 --steps 1000 --nodes 423154 --edges 49400000
for batch in 32 64; do # replicas: the batch shared out (strong scaling), the batch of one GPU on each (weak)
  bench $((checks + 20)) recurrence --model lognormal --nodes 211577 --edges 24680000 --replicas "$ranks" --batch "$batch"
done
bench $((checks + 15)) recurrence --model lognormal --nodes 211577 --edges 24680000
bench $((checks + 15)) recurrence --model lognormal --nodes 160514 --edges 10400000 --replicas "$ranks"
bench $((checks + 15)) recurrence --model lognormal --nodes 160514 --edges 10400000
bench $((checks + 25)) halo --nodes 211577 --edges 24680000
cat all >>"$results"
printf '%-11s %-34s %8s %9s %6s %12s\n' bench case nodes edges ranks microseconds
python3 - all <<'END'
import json, sys
for line in open(sys.argv[1]):
    b = json.loads(line)
    case = b["case"] + (f" {b['replicas']} replicas of {b['batch']}" if b.get("replicas", 1) > 1 else "")
    print(f"{b['bench']:11s} {case:34s} {b['nodes']:8d} {b['edges']:9d} {b['ranks']:6d} {b['seconds'] * 1e6:12.2f}")
END
# shellcheck disable=SC2086
python3 "$here/gpu/ranks.py" "$ranks" --seconds $((limit - SECONDS)) ${RANKS_OPTIONS:-} || failed=1
echo "$ranks x $gpu, $date, $SECONDS s"
exit $failed
