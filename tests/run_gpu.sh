#!/bin/bash
# Everything that needs a GPU, in one call: backend tests, compute-sanitizer on small shapes, benches, a table last.
#   tests/run_gpu.sh [BUILD_FOLDER] [RESULTS]
#   tests/run_gpu.sh R [BUILD_FOLDER] [RESULTS]   what needs R GPUs of one host (run_gpu_ranks.sh)
# Programs are taken from BUILD_FOLDER, or from the PATH when there is none. Bench lines are appended to RESULTS
# (default: gpu_results.jsonl beside this script), with the GPU and the date. ONLY=checks or ONLY=benches does one half.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ ${1:-} =~ ^[0-9]+$ ]] && exec bash "$here/run_gpu_ranks.sh" "$@"
build=$(realpath -m "${1:-$here/../build}")
results=$(realpath -m "${2:-$here/gpu_results.jsonl}")
[ -d "$build" ] && PATH=$build:$build/tests:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
date=$(date -u +%Y-%m-%d)
failed=0
step() { # NAME COMMAND...: its log is shown when it fails, at the first command of it that does: in an `if` bash would go on
  local name=$1 start=$SECONDS code
  shift
  set +e
  (set -e && "$@") >log 2>&1
  code=$?
  set -e
  if ((code == 0)); then
    echo "passed  $name ($((SECONDS - start)) s): $(tail -n 1 log)"
  else
    echo "FAILED  $name"
    cat log
    failed=1
  fi
}

# A training step on the GPU has the losses of the CPU.
train_like_the_cpu() {
  fascicle generate --nodes 600 --edges 20000 --output g.h5
  tr -dc 'a-z \n' </dev/urandom | head -c 20000 >text || true
  for device in cpu cuda; do
    fascicle train g.h5 --text text --output "run_$device" --device "$device" --set train_steps=20 --set log_every=1 \
      --set batch=16 --set n_input=64 --set n_output=128 --set eval_every=0
    grep '"record":"step"' "run_$device/metrics.jsonl" | sed 's/.*"loss":\([0-9.]*\).*/\1/' >"loss_$device"
  done
  paste loss_cpu loss_cuda | awk '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > most) most = d; n++ }
    END { printf "%d steps, losses differ by %.1e at most\n", n, most; exit !(n == 20 && most < 1e-5) }'
}

# Spikes of a run on the GPU, its edges in the GPU's memory or streamed from the host's, and of five trials at once,
# are those of the CPU.
digests() { # RUN...: of each trial
  grep -h '"record":"merged"' "$@" | sed 's/.*"spikes_digest":"\([0-9a-f]*\)".*/\1/'
}
# simulate_like_the_cpu NAME MEMORY CONFIGURATION: MEMORY (GiB) holds a part of the edges.
simulate_like_the_cpu() {
  [ -e s.h5 ] || fascicle generate --nodes 20000 --edges 1000000 --delays 1:8 --output s.h5
  local name=$1 memory=$2 where device residency more
  echo "$3" >"$name.json"
  for where in "cpu auto" "cuda resident" "cuda streamed --memory $memory"; do
    read -r device residency more <<<"$where"
    # shellcheck disable=SC2086
    fascicle simulate s.h5 --config "$name.json" --steps 500 --trials 5 --output "${name}_${device}_$residency" --device "$device" \
      --residency "$residency" $more
    digests "${name}_${device}_$residency"/trial_*/metrics.jsonl >"digests_${name}_${device}_$residency"
  done
  cmp "digests_${name}_cpu_auto" "digests_${name}_cuda_resident"
  cmp "digests_${name}_cpu_auto" "digests_${name}_cuda_streamed"
  [ "$(sort -u "digests_${name}_cpu_auto" | wc -l)" = 5 ] && echo "five trials, resident and streamed: equal digests"
}

# Two classes, adaptation, Poisson events and noise; delays of 1 to 8 steps.
model_configuration() { # MODEL
  local weight=weight_mv synapse='"tau_syn_ms": 5'
  [ "$1" = psc_exp ] && weight=weight_pa synapse='"tau_syn_ex_ms": 2, "tau_syn_in_ms": 5'
  cat <<JSON
{"model": "$1", "dt_ms": 0.1, "$weight": 0.3, "seed": 4, "neuron": {"v_rest_mv": -52, "v_threshold_mv": -45, "v_reset_mv": -52,
  "tau_m_ms": 20, "c_m_pf": 250, "refractory_ms": 2.2, $synapse, "adaptation": {"tau_ms": 50, "jump_mv": 1}},
 "classes": [{"neurons": {"indices": [$(seq -s, 0 3 8999)]}, "tau_m_ms": 12, "v_threshold_mv": -47}],
 "stimulus": [{"neurons": "all", "kind": "poisson", "rate_hz": 300, "weight_mv": 5, "into": "v"},
  {"neurons": "all", "kind": "noise", "sd_pa": 40}]}
JSON
}

too_little_memory() {
  fascicle simulate s.h5 --config lif_shift.json --steps 10 --output no --device cuda --memory 0.03 && return 1
  echo "refused"
}

# The unit tests of the LIF rules, the oracle's vectors among them, with the GPU in the CPU's place.
lif_rules() {
  for name in oracle variants rules models; do
    TEST_DEVICE=cuda TEST_DATA="${TEST_DATA:-$here/data}" "test_lif_$name"
  done
}

checks() {
  step "recurrence against float64" gpu_test_recur
  if [ -d "${TEST_DATA:-$here/data}" ] && command -v test_lif_oracle >/dev/null; then
    step "LIF, oracle vectors and rules" lif_rules
  else
    echo "skipped the oracle vectors: tests/data or test_lif_oracle is not here"
  fi
  step "LIF, simulate against the CPU" simulate_like_the_cpu lif_shift 0.27 '{"threshold": 400, "decay_shifts": [4],
    "refractory_steps": 5, "stimulus": [{"neurons": "all", "kind": "poisson", "rate_hz": 10, "weight": 420}]}'
  step "LIF, too little memory" too_little_memory
  for model in lif_exp psc_exp; do
    step "$model, simulate against the CPU" simulate_like_the_cpu "$model" 0.4 "$(model_configuration "$model")"
  done
  step "LIF against the CPU, 10,000 steps at full size too" gpu_test_lif full
  step "LIF as on a GPU of 99 kB shared memory a block" env FASCICLE_SHARED_BYTES=101376 gpu_test_lif
  step "training against the CPU" train_like_the_cpu
  step "two ranks that share the GPU" python3 "$here/gpu/ranks.py" 2 --transports mpi --only rows,rules,train --seconds 120
  library=$(dirname "$(command -v fascicle)")/libfascicle.so
  step "libfascicle on PyTorch tensors" env LIBFASCICLE="$library" python3 "$here/gpu/capi.py"
  if command -v compute-sanitizer >/dev/null; then
    step "memcheck, recurrence" compute-sanitizer --error-exitcode 9 gpu_test_recur small
    step "memcheck, LIF" compute-sanitizer --error-exitcode 9 gpu_test_lif quick
  else
    echo "skipped compute-sanitizer: it is not on the PATH"
  fi
}

bench() { # ARGS...: lines on stdout, kept with the GPU and the date
  fascicle bench "$@" --device cuda --json 2>log >lines || { cat log; failed=1; }
  sed "s/^{/{\"gpu\": \"$gpu\", \"date\": \"$date\", /" lines >>all
}
benches() {
  : >all
  for shape in "5000 524324" "10000 1100000" "160514 10402842" "211577 24678466"; do
    read -r nodes edges <<<"$shape"
    fascicle generate --nodes "$nodes" --edges "$edges" --no-order --force --output graph.h5 >log 2>&1 || { cat log; failed=1; }
    bench recurrence --graph graph.h5 --seconds 2
    bench recurrence --graph graph.h5 --seconds 2 --precision mixed
    if ((edges > 5000000)); then bench recurrence --graph graph.h5 --seconds 2 --batch 16; fi # what one of two replicas does
  done
  bench lif --nodes 211577 --edges 24678466 --delays 1:8 --steps 1000
  bench lif --nodes 10000 --edges 1000000 --delays 1:8 --steps 1000
  if python3 -c 'import torch' 2>/dev/null; then # PyTorch's sparse products at the first shape, in the same run
    python3 "$here/bench/torch_sparse.py" --device cuda --fascicle "$(command -v fascicle)" >line
    sed "s/^{/{\"gpu\": \"$gpu\", \"date\": \"$date\", /" line >>"$results"
    sed 's/.*"ratio": {\([^}]*\)}.*/times fascicle bench recurrence: \1/' line
  fi
  cat all >>"$results"

  python3 "$here/gpu/bars.py" all --ranks 1
  echo "$gpu, $date"
}

[ "${ONLY:-checks}" = checks ] && checks
[ "${ONLY:-benches}" = benches ] && benches
exit $failed
