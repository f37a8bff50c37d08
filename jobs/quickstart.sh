#!/bin/bash
# jobs/quickstart.sh [EDGES [NODES]] [-- CONVERT-OPTION...]: from nothing to a picture of spikes. Installs what is missing, builds, makes a small
# synthetic connectome (or converts the given edge table, or takes the given .h5 graph), simulates it on 2 ranks with a
# stimulus, and draws a spike raster. Words after -- go to `fascicle convert`, such as --columns. Settings: OUTPUT (folder, default quickstart-out), STEPS (1000), N_RANKS (2).
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit ;; esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
files=()
while (($#)) && [ "$1" != -- ]; do
  files+=("$(realpath "$1")")
  shift
done
shift || true # what is left are options of convert
input=${files[0]:-} nodes=${files[1]:-}
output=$(realpath -m "${OUTPUT:-$PWD/quickstart-out}")
if [ -e "$here/../CMakeLists.txt" ]; then # else these scripts are installed beside a program
  "$here/setup.sh" run
  "$here/build.sh" build
fi
# shellcheck source=env.sh
. "$here/env.sh"
mkdir -p "$output"
graph=$output/graph.h5
case ${input:-} in
  "") "$FASCICLE" generate --nodes 2000 --edges 100000 --model modular --delays 1:8 --seed 1 --no-order --force --output "$graph" ;;
  *.h5) graph=$input ;;
  *) "$FASCICLE" convert --edges "$input" ${nodes:+--nodes "$nodes"} --no-order --force --output "$graph" "$@" ;;
esac
"$FASCICLE" order "$graph" --force --output "$output/ordered.h5"
mpirun -n "${N_RANKS:-2}" "$FASCICLE" simulate "$output/ordered.h5" --config "$here/conf/lif_example.json" \
  --steps "${STEPS:-1000}" --output "$output/run" --force
"${PYTHON:-/usr/bin/python3}" "$here/analysis/raster.py" "$output/run" --output "$output/raster"
echo
echo "Graph    $output/ordered.h5      fascicle inspect $output/ordered.h5"
echo "Spikes   $output/run/spikes.h5   (SONATA; h5py, libsonata)"
echo "Picture  $output/raster.png"
