#!/bin/bash
# Every header of src/core, src/contract, the kernels' interface and the layout of GPUs can be included alone, by C, C++ and CUDA,
# without a warning.
set -euo pipefail
cd "$SOURCE"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
mapfile -t headers < <(git ls-files 'src/core/*.h' 'src/contract/*.h' 'kernels/interface/*.h' 'kernels/cuda/layout/*.h' | sed 's|^src/||')
[ "${#headers[@]}" -gt 20 ] || { echo "only ${#headers[@]} headers found"; exit 1; }
read -r -a foreign < <(pkg-config --cflags-only-I ompi-c jansson libcrypto | sed 's/-I/-isystem /g')

# can COMPILER SUFFIX WORDS...: each header by itself
can() {
  local compiler=$1 suffix=$2 header
  shift 2
  for header in "${headers[@]}"; do
    echo "#include \"$header\"" >"$work/a.$suffix"
    "$compiler" -fsyntax-only -Wall -Wextra -Werror -D_GNU_SOURCE -DOMPI_SKIP_MPICXX "$@" -I src -I . "${foreign[@]}" "$work/a.$suffix" 2>"$work/err" || {
      echo "$compiler: $header: $(head -5 "$work/err")"
      bad=1
    }
  done
}

can cc c -std=gnu11
tried=C
if command -v c++ >/dev/null; then
  can c++ cc -std=c++17
  tried="$tried, C++"
fi
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ -x "$nvcc" ]; then # all at once: it takes seconds to start
  printf '#include "%s"\n' "${headers[@]}" >"$work/a.cu"
  "$nvcc" -c -o "$work/a.o" -D_GNU_SOURCE -DOMPI_SKIP_MPICXX -I src -I . "${foreign[@]}" "$work/a.cu" 2>"$work/err" || {
    echo "nvcc: $(head -5 "$work/err")"
    bad=1
  }
  tried="$tried, CUDA"
fi
[ $bad = 0 ] && echo "headers: ${#headers[@]} by $tried"
exit $bad
