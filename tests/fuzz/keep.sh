#!/bin/bash
# tests/fuzz/keep.sh [TARGET...]: the fewest inputs that reach all that the corpus and build-fuzz/TARGET/corpus reach, into
# tests/fuzz/corpus/TARGET.tgz. Files beside it (tests/fuzz/corpus/TARGET/) are written by hand or were findings: they stay.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
targets=("$@")
if ((${#targets[@]} == 0)); then targets=(graph checkpoint spikes config convert blocks folder); fi
for target in "${targets[@]}"; do
  mkdir -p "build-fuzz/$target/corpus" "build-fuzz/$target/seeds" && rm -rf "build-fuzz/$target/kept" && mkdir "build-fuzz/$target/kept"
  ASAN_OPTIONS=detect_leaks=0 "$PWD/build-fuzz/tests/fuzz/fuzz_$target" -close_fd_mask=3 -merge=1 -max_len=400 -timeout=30 \
    "$PWD/build-fuzz/$target/kept" "$PWD/build-fuzz/$target/seeds" "$PWD/build-fuzz/$target/corpus" >"build-fuzz/$target/merge.log" 2>&1
  tar -C "build-fuzz/$target/kept" --sort=name --owner=0 --group=0 --mtime=@0 -czf "tests/fuzz/corpus/$target.tgz" .
  echo "$target: $(find "build-fuzz/$target/kept" -type f | wc -l) inputs"
done
