#!/bin/bash
# tests/fuzz/loop.sh PROGRAM SECONDS FOLDER [CORPUS]: one fuzz target for that long, started again after each finding.
# New inputs go to FOLDER/corpus, findings to FOLDER/found-*, their output to FOLDER/log; CORPUS is read and not changed.
# Prints one JSON line: target, executions, CPU seconds, findings. Needs nothing of the source tree but the program.
set -euo pipefail
program=$(realpath "$1") seconds=$2
mkdir -p "$3/corpus"
folder=$(realpath "$3")
seeds=()
if [ -n "${4:-}" ] && [ -d "$4" ]; then seeds=("$(realpath "$4")"); fi
target=$(basename "$program")
target=${target#fuzz_}
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1} UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TIMEFORMAT='%U %S'
FUZZ_TMP=$(mktemp -d /dev/shm/fascicle_fuzz.XXXXXX)
export FUZZ_TMP
export HWLOC_COMPONENTS=${HWLOC_COMPONENTS:--opencl} # its OpenCL drivers take half a gigabyte
trap 'rm -rf "$FUZZ_TMP"' EXIT
executions=0 cpu=0 findings=0 end=$((SECONDS + seconds))
# Every run is at most two minutes: what an input leaves behind does not add up.
while ((SECONDS < end)); do
  left=$((end - SECONDS))
  code=0
  {
    time "$program" -close_fd_mask=1 -max_total_time=$((left < 120 ? left : 120)) -malloc_limit_mb=512 -timeout=20 \
      -rss_limit_mb=2048 -max_len=4096 -len_control=2 -reload=1 -print_final_stats=1 -artifact_prefix="$folder/found-" \
      "$folder/corpus" "${seeds[@]}" >"$folder/log" 2>&1 || code=$?
  } 2>"$folder/time"
  n=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/log" | tail -n 1)
  [ -n "$n" ] || n=$(sed -n 's/^#\([0-9]*\)[^0-9].*/\1/p' "$folder/log" | tail -n 1)
  executions=$((executions + ${n:-0}))
  cpu=$(awk -v c="$cpu" '{c += $1 + $2} END {print c}' "$folder/time")
  if ((code)); then
    findings=$((findings + 1))
    cp "$folder/log" "$folder/log-$findings"
    # The fuzzer keeps the input itself, but not when it is killed.
    if [ -f "$FUZZ_TMP/input" ]; then cp "$FUZZ_TMP/input" "$folder/found-input-$findings"; fi
    ((findings < 20)) || break
  fi
  rm -rf "${FUZZ_TMP:?}"/*
done
printf '{"target": "%s", "executions": %d, "cpu_seconds": %.1f, "findings": %d}\n' "$target" "$executions" "$cpu" "$findings"
