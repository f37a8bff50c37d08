#!/bin/bash
# jobs/microcircuit.sh [SCALE [poisson|dc]]: the cortical microcircuit of Potjans and Diesmann (2014) with one command: draws the network at
# a scale of its neurons and inputs (0.1; the whole one, 1, is 0.3 G synapses and takes 4 GB), simulates it with Poisson background or constant
# currents in its place, and prints rates, irregularity and synchrony of each population beside the published rates.
# Settings: OUTPUT (folder, default microcircuit-out), MS (simulated time, 2000), FROM_MS (left out at the beginning, 500), N_RANKS (1), SEED (1).
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit ;; esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=env.sh
. "$here/env.sh"
scale=${1:-0.1} background=${2:-poisson} output=${OUTPUT:-microcircuit-out}
mkdir -p "$output"
"$FASCICLE" generate --kind microcircuit --scale "$scale" --background "$background" --seed "${SEED:-1}" --force \
  --output "$output/graph.h5" --config-output "$output/config.json"
start=()
if [ "${N_RANKS:-1}" -gt 1 ]; then start=(mpirun -n "$N_RANKS"); fi
"${start[@]}" "$FASCICLE" simulate "$output/graph.h5" --config "$output/config.json" --steps "$((${MS:-2000} * 10))" \
  --output "$output/run" --force
"${PYTHON:-/usr/bin/python3}" "$here/analysis/populations.py" "$output/run" --published "$here/conf/microcircuit_published.json" \
  --from-ms "${FROM_MS:-500}" --output "$output/table.csv"
