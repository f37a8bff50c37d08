#!/bin/bash
# tests/fuzz/run.sh [SECONDS [TARGET...]]: coverage-guided fuzzing (libFuzzer, AddressSanitizer, UBSan) of everything that is
# read, SECONDS each (default 60), as many targets at once as there are cores. The inputs of tests/fuzz/corpus come first:
# whatever was found once is tried again (keep.sh adds to them). New inputs go to build-fuzz/TARGET/corpus; a finding is kept
# beside them and ends the script with 1. One line of figures a target; FUZZ_RECORD=FILE appends them there as JSON, with date and commit
# (tests/fuzz/RESULTS.jsonl is made of such lines). With LD_LIBRARY_PATH set to the folder that hdf5.sh fills, HDF5 is checked too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-60}
shift || true
targets=("$@")
if ((${#targets[@]} == 0)); then targets=(graph checkpoint spikes config convert blocks folder json scx table text); fi
mkdir -p build-fuzz
CC=clang cmake -S . -B build-fuzz -G Ninja -DFASCICLE_CUDA=off -DCMAKE_BUILD_TYPE=RelWithDebInfo -DFASCICLE_FUZZ=ON \
  -DBUILD_TESTING=OFF >build-fuzz/build.log 2>&1 && ninja -C build-fuzz "${targets[@]/#/fuzz_}" >>build-fuzz/build.log 2>&1 || {
  tail -n 30 build-fuzz/build.log
  exit 1
}
rm -f build-fuzz/*/found-* build-fuzz/*.json
one() {
  local target=$1
  # Verbs start MPI, whose threads LeakSanitizer does not survive; what lives is counted by these targets themselves.
  local leaks=0
  case $target in json | scx | table | text) leaks=1 ;; esac
  local seeds=build-fuzz/$target/seeds
  mkdir -p "$seeds" && cp tests/fuzz/corpus/"$target"/* "$seeds"
  if [ -f tests/fuzz/corpus/"$target".tgz ]; then tar -C "$seeds" -xzf tests/fuzz/corpus/"$target".tgz; fi
  ASAN_OPTIONS=detect_leaks=$leaks tests/fuzz/loop.sh build-fuzz/tests/fuzz/fuzz_"$target" "$seconds" build-fuzz/"$target" \
    "$seeds" >build-fuzz/"$target".json
}
running=0
for target in "${targets[@]}"; do
  if ((running >= $(nproc))); then wait -n && running=$((running - 1)); fi
  one "$target" &
  running=$((running + 1))
done
wait
bad=0
for target in "${targets[@]}"; do
  line=$(cat build-fuzz/"$target".json)
  if [[ $line == *'"findings": 0}'* ]]; then
    echo "fuzz: $line"
  else
    echo "fuzz: $line FOUND something, build-fuzz/$target/found-*:"
    grep -vE 'fuzzer::|NOTE|MS:' build-fuzz/"$target"/log | tail -n 40
    bad=1
  fi
  if [ -n "${FUZZ_RECORD:-}" ]; then
    echo "{\"date\": \"$(date -u +%F)\", \"commit\": \"$(git rev-parse --short HEAD)\", ${line#\{}" >>"$FUZZ_RECORD"
  fi
done
exit $bad
