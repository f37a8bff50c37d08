#!/bin/bash
# run_gpu_ranks.sh R [BUILD_FOLDER] [RESULTS]: what needs R >= 2 GPUs of one host, in one call of nine minutes at most;
# tests/run_gpu.sh R calls it.
#   1. graphs, drawn on the CPU into files that every bench loads; one-GPU times, on two GPUs at once
#   2. benches on all GPUs: replicas (strong and weak scaling), parts, LIF, exchanges
#   3. the table of both, side by side, and their ratios against the bars (gpu/bars.py)
#   4. the checks of gpu/ranks.py
# Lines are appended to RESULTS. SECONDS_LEFT (540) bounds the whole, CHECKS (180) of them are kept for the checks, which
# RANKS_OPTIONS are handed to: what no longer fits is named and left out. ONLY=benches or ONLY=checks does one half; in
# one call the checks end with some deaths of ranks left out. A bench that hangs is ended and fails.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ranks=$1
build=$(realpath -m "${2:-$here/../build}")
results=$(realpath -m "${3:-$here/gpu_results.jsonl}")
limit=${SECONDS_LEFT:-540}
checks=${CHECKS:-180}
((ranks >= 2)) || { echo "run_gpu.sh R: R of at least 2 is wanted, not $ranks"; exit 2; }
[ -d "$build" ] && PATH=$build:$build/tests:$PATH
for program in fascicle gpu_test_transport gpu_test_lif_ranks mpirun nvidia-smi python3; do
  command -v $program >/dev/null || { echo "run_gpu.sh $ranks: $program is neither in $build nor on the PATH"; exit 2; }
done
names=$(nvidia-smi --query-gpu=name --format=csv,noheader)
gpu=${names%%$'\n'*}
(($(wc -l <<<"$names") >= ranks)) || { echo "run_gpu.sh $ranks: this host has fewer GPUs"; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_rmaps_base_oversubscribe=1
share=$(($(nproc) / ranks))
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((share > 8 ? 8 : share > 1 ? share : 1))}
IFS=, read -ra device <<<"${CUDA_VISIBLE_DEVICES:-$(seq -s , 0 $((ranks - 1)))}"
date=$(date -u +%Y-%m-%d)

# bench SECONDS RANKS ARGS...: left out when it would not end in time; with RANKS 1 on the GPU $lane
bench() {
  local needs=$1 n=$2 out=lines.$EPOCHREALTIME start=$SECONDS
  shift 2
  if ((SECONDS + needs + checks > limit)); then
    echo "left out: bench $* on $n: $((limit - checks - SECONDS)) s remain"
    return
  fi
  local launch=(mpirun -q --bind-to none -n "$n") most=$((4 * needs + 20))
  ((n > 1)) || launch=(env CUDA_VISIBLE_DEVICES="${device[$lane]}")
  if ! timeout -k 10 $most "${launch[@]}" fascicle bench "$@" --device cuda --json >"said$out" 2>"log$out"; then
    echo "FAILED  bench $* on $n, after $((SECONDS - start)) s of $most:"
    cat "log$out"
    touch failed
  fi
  grep -v '^{' "said$out" || true # what else was said is no line
  sed -n "s/^{\(.*}\)$/{\"gpu\": \"$gpu\", \"date\": \"$date\", \1/p" "said$out" >"$out"
  echo "  $((SECONDS - start)) s  bench $* on $n"
}
recurrence() { # RANKS ARGS...
  local n=$1
  shift
  bench 11 "$n" recurrence --seconds 1 "$@"
}

simulation() { # RANKS DELAYS STEPS TIMES ARGS...: the graph of a fly, or TIMES as large
  bench $((5 + 3 * $4)) "$1" lif --plain --delays "$2" --steps "$3" --nodes $((211577 * $4)) --edges $((24680000 * $4)) "${@:5}"
}

fly="211577 24680000" core="160514 10400000"
draw() { # FILE NODES EDGES ARGS...
  timeout -k 5 $((limit / 3)) fascicle generate --nodes "$2" --edges "$3" --output "$1" "${@:4}" >/dev/null 2>"$1.log" ||
    { echo "FAILED  $1"; cat "$1.log"; touch failed; }
}
graphs() {
  # shellcheck disable=SC2086
  {
    draw modular.h5 $fly --model modular & # in the partitioner's order, which takes longest
    ordering=$!
    draw fly.h5 $fly --no-order &
    local whole=$!
    draw core.h5 $core --no-order
    wait $whole
  }
}

one_gpu() {
  (
    lane=0
    recurrence 1 --graph fly.h5
    while kill -0 $ordering 2>/dev/null; do sleep 0.2; done
    recurrence 1 --graph modular.h5
  ) &
  local first=$!
  (
    lane=1
    recurrence 1 --graph core.h5
    recurrence 1 --graph fly.h5 --batch $((32 / ranks))
  )
  wait $first
  (lane=0 && simulation 1 4:8 2000 1) &
  first=$!
  (lane=1 && simulation 1 1:8 2000 1)
  wait $first
}

all_gpus() {
  simulation "$ranks" 4:8 2000 1
  simulation "$ranks" 1:8 2000 1
  simulation "$ranks" 4:8 1000 "$ranks"
  for graph in fly core; do # the batch shared out (strong scaling), then the batch of one GPU on each (weak)
    for batch in 32 $((32 * ranks)); do
      ((batch % ranks)) || recurrence "$ranks" --graph $graph.h5 --replicas "$ranks" --batch "$batch"
    done
  done
  for graph in fly modular core; do recurrence "$ranks" --graph $graph.h5; done
  for graph in fly modular core; do bench 7 "$ranks" halo --graph $graph.h5; done
  recurrence "$ranks" --graph fly.h5 --transport nccl
  bench 7 "$ranks" halo --graph fly.h5 --transport nccl
  simulation "$ranks" 1:8 500 1 --transport nccl
}

if [ "${ONLY:-benches}" = benches ]; then
  [ "${ONLY:-}" = benches ] && checks=0
  graphs
  one_gpu
  all_gpus
  : >all
  for lines in lines.*; do [ ! -e "$lines" ] || cat "$lines" >>all; done
  cat all >>"$results"
  python3 "$here/gpu/bars.py" all --ranks "$ranks" || touch failed
  rm -f ./*.h5
fi
if [ "${ONLY:-checks}" = checks ]; then
  # shellcheck disable=SC2086
  python3 "$here/gpu/ranks.py" "$ranks" --seconds $((limit - SECONDS)) ${RANKS_OPTIONS:-} || touch failed
fi
echo "$ranks x $gpu, $date, $SECONDS s"
[ ! -e failed ]
