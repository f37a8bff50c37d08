#!/bin/bash
# Threads spin for each other briefly: what OpenMP itself says of its settings, and that the user's own stay.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset OMP_NUM_THREADS OMP_WAIT_POLICY GOMP_SPINCOUNT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_DISPLAY_ENV=verbose

# expect SPINS ENVIRONMENT...: how long the program's threads spin in the end
expect() {
  local spins=$1 found
  shift
  env "$@" "$FASCICLE" inspect "$work/none" >/dev/null 2>"$work/err" && echo "test_waits: a graph that is not there was read" && exit 1
  if ! grep -q GOMP_SPINCOUNT "$work/err"; then echo "another OpenMP than GCC's: not tested" && exit 0; fi
  found=$(sed -n "s/.*GOMP_SPINCOUNT = '\(.*\)'.*/\1/p" "$work/err" | tail -1)
  if [ "$found" != "$spins" ]; then echo "test_waits: $* gives $found spins, not $spins" && exit 1; fi
  if [ "$(grep -c '^fascicle:' "$work/err")" != 1 ]; then echo "test_waits: not one line: $(cat "$work/err")" && exit 1; fi
}
if [ "$(nproc)" -gt 1 ]; then expect 1000 A=1; fi
expect 77 GOMP_SPINCOUNT=77
expect 0 OMP_WAIT_POLICY=passive
echo "threads spin briefly, or as they are told"
