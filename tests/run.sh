#!/bin/bash
# tests/run.sh: install what is missing, build, and pass every test. Two builds: an optimised one that runs the whole suite, and
# a checked one (active invariants, poisoned memory, AddressSanitizer and UBSan) that runs the unit tests again (`ctest --test-dir build-checked -j 4`
# runs most others so too, in ten minutes more; test_train_learns takes far longer); and a short look for races and fuzz run.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=../jobs/env.sh
. jobs/env.sh
jobs/setup.sh run test parity slurm
jobs/build.sh build
jobs/build.sh build-checked -DCMAKE_BUILD_TYPE=Debug -DFASCICLE_CHECKED=ON -DFASCICLE_SANITIZE=address,undefined \
  -DFASCICLE_CUDA=off

# Most tests wait more than they work (MPI starts, runs are stopped), so more of them than cores run side by side.
jobs=${TEST_JOBS:-$((2 * $(nproc)))}
# Leaks are looked for in our code; MPI and its helpers keep memory of their own until the process ends.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
echo "== checked build: unit tests under AddressSanitizer and UBSan"
ctest --test-dir build-checked --no-tests=error --output-on-failure -j "$jobs" -R '^test_.*_[0-9]+$' --timeout 600 "$@"
echo "== threads: under ThreadSanitizer, with a planted race that must be found"
tests/threads.sh
echo "== fuzzing, a few seconds a parser (tests/fuzz/run.sh SECONDS for more)"
tests/fuzz/run.sh "${FUZZ_SECONDS:-3}"
echo "== optimised build: the whole suite"
ctest --test-dir build --no-tests=error --output-on-failure -j "$jobs" "$@"
