#!/bin/bash
# `cmake --install` into a fresh prefix, then moved, gives a program that runs, its job files and its documentation, and a library
# that C programs find through pkg-config and CMake, and Python beside its module.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$(dirname "$FASCICLE")" --prefix "$work/staged" >/dev/null
mv "$work/staged" "$work/prefix"
prefix=$work/prefix
"$prefix/bin/fascicle" --version >/dev/null
for file in share/fascicle/jobs/simulate.sbatch share/fascicle/jobs/analysis/raster.py share/doc/fascicle/README.md \
  share/man/man1/fascicle.1; do
  [ -s "$prefix/$file" ] || {
    echo "test_install: $file was not installed"
    exit 1
  }
done
found=$(unset FASCICLE && . "$prefix/share/fascicle/jobs/env.sh" && echo "$FASCICLE")
[ "$(realpath "$found")" = "$prefix/bin/fascicle" ] || {
  echo "test_install: env.sh found '$found'"
  exit 1
}

cat >"$work/use.c" <<'C'
#include <fascicle.h>
int main(void) { return fascicle_api_version() != FASCICLE_API_VERSION; }
C
pkg_config=$(find "$prefix" -name fascicle.pc -printf '%h')
read -ra words <<<"$(PKG_CONFIG_PATH=$pkg_config pkg-config --cflags --libs fascicle)"
cc "$work/use.c" "${words[@]}" -o "$work/use"
LD_LIBRARY_PATH=$(dirname "$pkg_config") "$work/use"

mkdir "$work/cmake"
cat >"$work/cmake/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(use C)
find_package(fascicle 0.1 REQUIRED)
add_executable(use ../use.c)
target_link_libraries(use fascicle::fascicle)
CMAKE
cmake -S "$work/cmake" -B "$work/cmake/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$work/cmake/build" >/dev/null
"$work/cmake/build/use"

PYTHONPATH=$prefix/share/fascicle/jobs/python "$PYTHON" -c '
import fascicle, sys
places = [line.split()[-1] for line in open("/proc/self/maps") if "libfascicle" in line]
sys.exit(not places or not all(place.startswith(sys.argv[1]) for place in places))' "$(realpath "$prefix")"

# shellcheck source=../../jobs/packaging/completion.bash
. "$prefix/share/bash-completion/completions/fascicle"
COMP_WORDS=(fascicle simulate --device c) COMP_CWORD=3 COMPREPLY=()
_fascicle "$prefix/bin/fascicle"
[ "${COMPREPLY[*]}" = "cpu cuda" ] || {
  echo "test_install: completed as '${COMPREPLY[*]}'"
  exit 1
}
