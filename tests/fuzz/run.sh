#!/bin/bash
# tests/fuzz/run.sh [SECONDS [TARGET...]]: coverage-guided fuzzing (libFuzzer, AddressSanitizer, UBSan) of every parser, SECONDS each (default
# 60). New inputs go to build-fuzz/corpus; a crash is kept in build-fuzz and ends the script with 1. Prints one line of figures a target.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-60}
shift || true
targets=("$@")
if ((${#targets[@]} == 0)); then
  for file in tests/fuzz/fuzz_*.c; do
    name=${file##*/fuzz_}
    targets+=("${name%.c}")
  done
fi
FASCICLE_CUDA=off CC=clang jobs/build.sh build-fuzz -DCMAKE_BUILD_TYPE=RelWithDebInfo -DFASCICLE_FUZZ=ON -DBUILD_TESTING=OFF >/dev/null
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
bad=0
for target in "${targets[@]}"; do
  corpus=build-fuzz/corpus/$target
  mkdir -p "$corpus"
  log=build-fuzz/$target.log
  if build-fuzz/tests/fuzz/fuzz_"$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="build-fuzz/$target-" "$corpus" tests/fuzz/corpus/"$target" >"$log" 2>&1; then
    echo "fuzz $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s, no finding"
  else
    echo "fuzz $target: FOUND something:"
    tail -n 25 "$log"
    bad=1
  fi
done
rm -rf /dev/shm/fascicle_fuzz_*
exit $bad
