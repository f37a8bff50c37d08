#!/bin/bash
# Rooms hold: every folder of sources is a room that CMake knows, nobody reaches into another by a relative path, an include
# that KNOWS does not list fails to compile, and each foreign library stays in its place.
set -euo pipefail
cd "$SOURCE"
bad=0
report() {
  echo "$1"
  bad=1
}
sources() { git ls-files 'src/*.[ch]' 'io/*.[ch]' 'partition/*.[ch]' 'kernels/*.[ch]' 'kernels/*.cu' 'kernels/*.cuh'; }

while read -r file; do report "relative path in an include: $file"; done < <(sources | xargs grep -nE '#include "[^"]*\.\.' || true)

while read -r folder; do
  case $folder in src | */x86 | */portable) continue ;; esac # main.c; parts of kernels/cpu/recur
  grep -qE "(room|may_include)\((.*[ (])?${folder}[ )]|LIBRARY_ROOMS .*${folder}[ )]|STATIC $folder/" CMakeLists.txt ||
    report "$folder: no room of CMakeLists.txt"
done < <(sources | xargs -n 1 dirname | sort -u)

# a file of core that names a room above it, built with core's own flags
if command -v ninja >/dev/null && [ -d "$BUILD/rooms/core" ]; then
  try=$(mktemp -d)
  trap 'rm -rf "$try"' EXIT
  for header in lif/run.h io/hdf5/h5.h kernels/interface/backends.h; do
    echo "#include \"$header\"" >"$try/a.c"
    if cc -I "$BUILD/rooms/core" -fsyntax-only "$try/a.c" 2>/dev/null; then report "core can include $header"; fi
  done
  echo '#include "core/types.h"' >"$try/a.c"
  cc -I "$BUILD/rooms/core" -fsyntax-only "$try/a.c" || report "core cannot include its own header"
else
  report "BUILD=${BUILD:-} holds no include paths of rooms"
fi

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
  done < <(sources | xargs grep -lE "#include <$header>" || true)
}
place metis.h partition/order.c
place 'hdf5.*\.h' 'io/hdf5/*'
place jansson.h src/core/json.h
place 'openssl/.*' src/core/digest.c
place 'cuda.*\.h' 'kernels/cuda/*'
place nccl.h 'kernels/cuda/*'
place mpi.h src/core/fail.c src/core/comm.c src/core/comm.h 'io/hdf5/*' 'kernels/mpi/*'

count=$(sources | wc -l)
[ "$count" -gt 20 ] || report "only $count sources found; is SOURCE right?"
[ $bad = 0 ] && echo "rooms: $count files in order"
exit $bad
