#!/bin/bash
# tests/threads.sh [TEST...]: the threaded parts (recurrence, model, LIF, readers) under ThreadSanitizer. Built with clang
# and LLVM's OpenMP, whose tool Archer tells ThreadSanitizer about barriers and reductions: with gcc's OpenMP it reports
# races in correct loops. A planted race must be found first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=../jobs/env.sh
. jobs/env.sh
tests=("$@")
if ((${#tests[@]} == 0)); then tests=(test_recur test_model test_lif_rules test_ahead test_lif_stream test_table test_connectome test_fields); fi
folder=build-threads
mkdir -p $folder
CC=clang cmake -S . -B $folder -G Ninja -DFASCICLE_CUDA=off -DCMAKE_BUILD_TYPE=None -DFASCICLE_SANITIZE=thread \
  -DCMAKE_C_FLAGS="-O1 -g1" >$folder/build.log 2>&1 && ninja -C $folder race "${tests[@]}" >>$folder/build.log 2>&1 || {
  tail -n 30 $folder/build.log
  exit 1
}
# MPI, HDF5 and the OpenMP runtime are not instrumented: what they do among themselves is not looked at.
export TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=0 exitcode=66 report_signal_unsafe=0" OMP_NUM_THREADS=3
export OMP_TOOL_LIBRARIES=${OMP_TOOL_LIBRARIES:-libarcher.so} OMPI_MCA_btl=self
$folder/tests/race good >/dev/null || { echo "threads: a correct loop was reported: is libarcher.so found?"; exit 1; }
if $folder/tests/race bad >$folder/race.log 2>&1 || ! grep -q "data race" $folder/race.log; then
  echo "threads: the planted race was not reported"
  exit 1
fi
bad=0
for test in "${tests[@]}"; do
  started=$SECONDS
  if $folder/tests/"$test" >"$folder/$test.log" 2>&1; then
    echo "threads: $test: no race ($((SECONDS - started)) s)"
  else
    echo "threads: $test FAILED:"
    grep -A 14 -m 3 "WARNING: ThreadSanitizer" "$folder/$test.log" || tail -n 20 "$folder/$test.log"
    bad=1
  fi
done
exit $bad
