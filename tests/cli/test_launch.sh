#!/bin/bash
# seconds: 240
# Wrong launches: each ends in time, with its exit code and one line, and harms nothing.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
checks=0
# expect CODE WORDS PROGRAM...: ends, in place of hanging, with the code, and one line that is no warning and holds the words.
expect() {
  local code=$1 words=$2 rc=0
  shift 2
  timeout 6000 "$@" >out 2>err || rc=$?
  if [ "$rc" != "$code" ]; then echo "test_launch: code $rc, not $code: $*: $(cat err)" && exit 1; fi
  if [ "$(grep '^fascicle:' err | grep -vc warning)" != 1 ] || ! grep -q -- "$words" err; then
    echo "test_launch: not one line with '$words': $*: $(cat err)" && exit 1
  fi
  checks=$((checks + 1))
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1
mpi=(mpirun -q --bind-to none)

"$FASCICLE" generate --nodes 40 --edges 400 --seed 3 --output graph.h5 >/dev/null 2>&1
"$FASCICLE" generate --nodes 40 --edges 400 --seed 4 --output other.h5 >/dev/null 2>&1
"$FASCICLE" generate --nodes 3 --edges 6 --seed 5 --no-order --output tiny.h5 >/dev/null 2>&1
echo '{"threshold": 100, "decay_shifts": [4], "stimulus": [{"neurons": "all", "kind": "current", "value": 30}]}' >lif.json
head -c 3000 "$TEST_DATA/shakespeare.txt" >text.txt
run=(simulate graph.h5 --config lif.json --steps 200)

# Copies of rank 0 of 1, by the words of Open MPI's mpirun, of srun, of the launchers of other MPIs; only the first copy speaks.
for variables in "OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=0" "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=0" "PMI_SIZE=3 PMI_RANK=0"; do
  # shellcheck disable=SC2086
  expect 69 'srun --mpi=pmix' env $variables "$FASCICLE" "${run[@]}" --output copies
done
rc=0
PMI_SIZE=3 PMI_RANK=1 "$FASCICLE" info >out 2>err || rc=$?
if [ $rc != 69 ] || [ -s err ]; then echo "test_launch: a later copy: $rc $(cat err)" && exit 1; fi
[ ! -e copies ] || { echo "test_launch: a refused launch made its folder" && exit 1; }

# Without any such word: one of three copies gets the folder, the others are refused.
for k in 0 1 2; do (r=0; "$FASCICLE" "${run[@]}" --steps 30000 --output same >"out$k" 2>"err$k" || r=$?; echo $r >"rc$k") & done
wait
[ "$(cat rc0 rc1 rc2 | sort | tr '\n' ' ')" = "0 73 73 " ] || { echo "test_launch: three copies: $(cat rc? err?)" && exit 1; }
[ "$(cat err0 err1 err2 | grep -c 'another run works in this folder\|holds a run already')" = 2 ] || { echo "test_launch: $(cat err?)" && exit 1; }
# And of copies that make one file, each makes it whole.
for k in 0 1 2; do "$FASCICLE" generate --nodes 2000 --edges 200000 --no-order --seed 3 --output file.h5 --force >/dev/null 2>"err$k" & done
wait
"$FASCICLE" inspect file.h5 --verify >/dev/null || { echo "test_launch: copies damage a file" && exit 1; }
checks=$((checks + 3))

# Another build on rank 1; other words; another graph under the same name.
cp "$FASCICLE" old
commit=$("$FASCICLE" info --json | sed 's/.*"commit": *"\([^"]*\)".*/\1/')
"$PYTHON" - "$commit" <<'PYTHON'
import sys
old = sys.argv[1].encode()
data = open("old", "rb").read()
assert data.count(old) >= 1
open("old", "wb").write(data.replace(old, b"x" * len(old)))
PYTHON
expect 2 'different programs' "${mpi[@]}" -n 1 "$FASCICLE" "${run[@]}" --output mixed : -n 1 ./old "${run[@]}" --output mixed
expect 2 'different command lines' "${mpi[@]}" -n 1 "$FASCICLE" "${run[@]}" --output mixed : -n 1 "$FASCICLE" "${run[@]}" --seed 4 --output mixed
mkdir a b
cp graph.h5 lif.json a && cp other.h5 b/graph.h5 && cp lif.json b
expect 65 'graph.h5' "${mpi[@]}" -n 1 --wdir "$work/a" "$FASCICLE" "${run[@]}" --output "$work/mixed" : -n 1 --wdir "$work/b" "$FASCICLE" "${run[@]}" --output "$work/mixed"
[ ! -e mixed ] || { echo "test_launch: a refused launch made its folder" && exit 1; }

# Another configuration in the same place: rank 0's counts for all. Other threads and vector units: the same spikes.
sed 's/100/90/' lif.json >b/lif.json && cp graph.h5 b/graph.h5
"$FASCICLE" "${run[@]}" --output plain 2>/dev/null
"${mpi[@]}" -n 1 --wdir "$work/a" "$FASCICLE" "${run[@]}" --output "$work/uneven" : -n 1 --wdir "$work/b" -x OMP_NUM_THREADS=3 -x FASCICLE_SIMD=plain \
  "$FASCICLE" "${run[@]}" --output "$work/uneven" 2>/dev/null
"$PYTHON" "$SOURCE/jobs/analysis/compare.py" plain uneven >/dev/null

for threads in 99999999 many; do
  OMP_NUM_THREADS=$threads "$FASCICLE" "${run[@]}" --output plain --force 2>err
  grep -q "OMP_NUM_THREADS=$threads: not a number" err || { cat err && exit 1; }
done

# More ranks than neurons: some own nothing.
"$FASCICLE" simulate tiny.h5 --config lif.json --steps 200 --output tiny1 2>/dev/null
timeout 600 "${mpi[@]}" -n 5 "$FASCICLE" simulate tiny.h5 --config lif.json --steps 200 --output tiny5 2>err || { cat err && exit 1; }
"$PYTHON" "$SOURCE/jobs/analysis/compare.py" tiny1 tiny5 >/dev/null
teach=(train tiny.h5 --text text.txt --output taught --set train_steps=2 --set steps_per_window=4 --set n_input=2 --set n_output=2)
timeout 600 "${mpi[@]}" -n 5 "$FASCICLE" "${teach[@]}" --parts 5 --set batch=2 2>err >/dev/null || { cat err && exit 1; }
expect 2 'replicas' "${mpi[@]}" -n 3 "$FASCICLE" "${teach[@]}" --parts 1 --set batch=2 --force
expect 2 'parts' "${mpi[@]}" -n 3 "$FASCICLE" "${teach[@]}" --parts 2 --force
checks=$((checks + 3))

# No GPU; no slots: the launcher's own words and code.
if ! "$FASCICLE" info --json | grep -q '"gpus": *[1-9]'; then
  expect 69 'cuda\|GPU\|CUDA' "$FASCICLE" "${run[@]}" --device cuda --output gpu
  expect 69 'cuda\|GPU\|CUDA' "${mpi[@]}" -n 2 "$FASCICLE" "${run[@]}" --device cuda --output gpu
fi
rc=0
OMPI_MCA_rmaps_base_oversubscribe=0 timeout 6000 mpirun --nooversubscribe --host localhost:1 -n 2 "$FASCICLE" info >out 2>err || rc=$?
if [ $rc != 1 ] || ! grep -q slots err; then echo "test_launch: no slots: $rc $(cat err)" && exit 1; fi

# What a job script does with the codes: 75 is queued again, 71 only if a checkpoint was written since.
finished() { # CODE [made]
  (
    export FASCICLE_JOBS=$SOURCE/jobs SLURM_JOB_ID=7
    scontrol() { echo "$*"; }
    . "$FASCICLE_JOBS/slurm.sh"
    launched=$(date +%s)
    mkdir -p queued/checkpoints
    touch -d "@$((launched + ${2:--9}))" queued/checkpoints/latest
    finish "$1" queued
  ) || true
}
[[ $(finished 75) == *'requeue 7'* && $(finished 71 5) == *'requeue 7'* && $(finished 71)$(finished 1 5)$(finished 65 5) == '' ]] || {
  echo "test_launch: requeue" && exit 1
}

# A file system without locks: the variable is named, and helps.
faulty=(env LD_PRELOAD="$(dirname "$FASCICLE")/tests/libfaulty.so" FAULT_CALL=flock FAULT_KIND=ENOLCK FAULT_NTH=1 FAULT_STICKY=1 FAULT_PATH="$work")
expect 65 'HDF5_USE_FILE_LOCKING=FALSE' "${faulty[@]}" "$FASCICLE" "${run[@]}" --output locks
expect 73 'HDF5_USE_FILE_LOCKING=FALSE' "${faulty[@]}" "$FASCICLE" generate --nodes 30 --edges 300 --output g.h5
HDF5_USE_FILE_LOCKING=FALSE "${faulty[@]}" "$FASCICLE" "${run[@]}" --output locks 2>/dev/null
"$PYTHON" "$SOURCE/jobs/analysis/compare.py" plain locks >/dev/null
echo "launch: $((checks + 2)) checks"
