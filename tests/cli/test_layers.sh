#!/bin/bash
# The layers hold: core includes nothing of ours above it, partition, io and kernels never include each other, and each foreign
# library stays in its place. CMake's include paths enforce most of it; this also catches relative paths.
set -euo pipefail
cd "$SOURCE"
bad=0
report() {
  echo "$1"
  bad=1
}

headers_of() { find "$1" -maxdepth 1 -name '*.h' -printf '%f\n'; }

# forbid FOLDER OTHER: lists the includes of a header of OTHER in files under FOLDER
forbid() {
  local header
  for header in $(headers_of "$2"); do
    if [ -n "$(find "$1" -name "$header")" ] || [ -e "src/core/$header" ]; then continue; fi
    grep -rnE "#include \"([^\"]*/)?$header\"" "$1" --include='*.[ch]' --include='*.cu' --include='*.cuh' |
      sed "s|^|$1 must not include $2: |" || true
  done
}

while read -r folder other; do
  found=$(forbid "$folder" "$other")
  [ -z "$found" ] || report "$found"
done <<'PAIRS'
src/core src
src/core io
src/core partition
src/core kernels
io src
io partition
io kernels
partition src
partition io
partition kernels
kernels src
kernels io
kernels partition
PAIRS

# place HEADER FILE...: HEADER is included by these files only
place() {
  local header=$1 file allowed
  shift
  while read -r file; do
    for allowed in "$@"; do
      # shellcheck disable=SC2053
      [[ $file == $allowed ]] && continue 2
    done
    report "$file includes <$header>, which belongs in: $*"
  done < <(grep -rlE "#include <$header>" src io partition kernels --include='*.[ch]' --include='*.cu' --include='*.cuh' || true)
}
place metis.h partition/order.c
place 'hdf5.*\.h' 'io/h5*'
place jansson.h src/core/json.h
place 'openssl/.*' src/core/digest.c
place 'cuda.*\.h' 'kernels/cuda/*'
place nccl.h 'kernels/cuda/*'
place mpi.h src/core/fail.c src/core/comm.c src/core/comm.h 'io/h5*' kernels/transport_mpi.c

count=$(find src io partition kernels -name '*.[ch]' | wc -l)
[ "$count" -gt 20 ] || report "only $count sources found; is SOURCE right?"
[ $bad = 0 ] && echo "layers: $count files in order"
exit $bad
