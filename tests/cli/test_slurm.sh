#!/bin/bash
# seconds: 900
# The shipped job files under a real Slurm of two "nodes" on this machine, 4 ranks on the CPU backend: a job that finishes; one that is
# preempted, one that meets its time limit and one that loses a node, all requeued and equal to the undisturbed run; a rank that is
# killed; an array of 6.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v slurmctld >/dev/null || {
  echo "skipped: the local Slurm needs root and the packages of 'jobs/setup.sh slurm'"
  [ "${CI:-}" = true ] && exit 1
  exit 77
}
work=$(mktemp -d)
export SLURM_LOCAL_DIR=$work/slurm SLURM_LOCAL_PORT=$((20000 + RANDOM % 20000)) FASCICLE_JOBS=$SOURCE/jobs
slurm=$SOURCE/jobs/local-slurm/slurm-local.sh
trap '"$slurm" stop >/dev/null 2>&1; rm -rf "$work"' EXIT
fail() {
  echo "test_slurm: $*" >&2
  tail -n 20 "$work"/*.log >&2 || true
  exit 1
}
"$slurm" start 2 4 >/dev/null
eval "$("$slurm" env)"
cd "$work"

"$FASCICLE" generate --nodes 300 --edges 9000 --delays 4:8 --seed 3 --no-order --output graph.h5 >/dev/null 2>&1
cat >lif.json <<'JSON'
{"threshold": 2000, "decay_shifts": [3], "refractory_steps": 5, "seed": 0,
 "stimulus": [{"neurons": "all", "kind": "poisson", "first_step": 0, "last_step": 1000000, "rate_hz": 5, "weight": 3000}]}
JSON
export GRAPH=$work/graph.h5 CONFIG=$work/lif.json STEPS=2000 CHECKPOINT_EVERY=300
submit() { sbatch --parsable --nodes=2 --ntasks-per-node=2 --cpus-per-task=1 --chdir="$work" "$@"; }
same_spikes() { "$PYTHON" "$SOURCE/jobs/analysis/compare.py" "$1" "$2" || fail "$1 and $2 differ"; }
# wait_for SECONDS COMMAND...: until the command succeeds
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || fail "waited in vain for: $*"
    sleep 0.3
  done
}
none_left() { ! pgrep -f "simulate $GRAPH .*--output $work/$1 " >/dev/null; }
state_is() { [ "$(squeue -h -j "$1" -o %T 2>/dev/null)" = "$2" ]; }
is_gone() { [ -z "$(squeue -h -j "$1" 2>/dev/null)" ]; }
code_of() { scontrol show job "$1" | sed -n 's/.*ExitCode=\([0-9]*\):.*/\1/p' | head -n 1; }

# 1. Finish, and the undisturbed result.
OUTPUT=$work/plain submit --wait --output="$work/plain.log" "$SOURCE/jobs/simulate.sbatch" >/dev/null || fail "simulate.sbatch"
[ -s plain/spikes.h5 ] || fail "no spikes.h5"

# 2. Preempted by a higher partition, requeued by Slurm, resumed.
STEPS=12000
export STEPS
OUTPUT=$work/long submit --wait --output="$work/long.log" "$SOURCE/jobs/simulate.sbatch" >/dev/null || fail "long run"
job=$(OUTPUT=$work/preempted submit --output="$work/preempted.log" "$SOURCE/jobs/simulate.sbatch")
wait_for 600 state_is "$job" RUNNING
wait_for 600 test -e preempted/checkpoints/latest
sbatch --wait --partition=urgent --nodes=2 --ntasks-per-node=4 --output="$work/urgent.log" --wrap 'sleep 1' >/dev/null
wait_for 600 is_gone "$job"
[ -s preempted/spikes.h5 ] || fail "the preempted job did not finish"
grep -q 'resum' preempted.log || fail "the preempted job did not resume"
same_spikes long preempted

# 3. A signal before the time limit: checkpoint, exit 75, requeue by the job script.
job=$(OUTPUT=$work/limited submit --output="$work/limited.log" "$SOURCE/jobs/simulate.sbatch")
wait_for 600 test -e limited/checkpoints/latest
scancel --signal=USR1 "$job"
wait_for 600 test -s limited/spikes.h5
wait_for 600 is_gone "$job"
grep -q 'requeue: restart 1' limited.log || fail "the job script did not requeue"
same_spikes long limited

# 4. A rank is killed: the step ends at once, with a code that is not 0; a later job resumes.
job=$(OUTPUT=$work/killed submit --no-requeue --output="$work/killed.log" "$SOURCE/jobs/simulate.sbatch")
wait_for 600 test -e killed/checkpoints/latest
pid=$(pgrep -f "^$FASCICLE simulate $GRAPH .*--output $work/killed " | head -n 1) # a rank, not srun
kill -9 "$pid"
wait_for 600 is_gone "$job"
wait_for 600 none_left killed # a job that begins while these end has crashed as MPI started
[ "$(code_of "$job")" != 0 ] || fail "a killed rank left exit code 0"
OUTPUT=$work/killed submit --wait --output="$work/killed2.log" "$SOURCE/jobs/simulate.sbatch" >/dev/null || fail "resume after a kill"
same_spikes long killed

# 5. A node loses power: Slurm requeues the job, which waits for the node and resumes.
job=$(OUTPUT=$work/lost submit --output="$work/lost.log" "$SOURCE/jobs/simulate.sbatch")
wait_for 600 test -e lost/checkpoints/latest
"$slurm" down node2
wait_for 600 state_is "$job" PENDING
[ ! -e lost/spikes.h5 ] || fail "the job was over before its node went down"
"$slurm" up node2
wait_for 600 test -s lost/spikes.h5
wait_for 600 is_gone "$job"
grep -q 'resum\|going on from' lost.log || fail "the job did not resume when its node was back"
same_spikes long lost

# 6. An array of 6 seeds.
OUTPUT=$work/sweep STEPS=200 sbatch --wait --array=0-5%2 --chdir="$work" --cpus-per-task=1 --output="$work/sweep-%a.log" \
  "$SOURCE/jobs/sweep.sbatch" >/dev/null || fail "sweep.sbatch"
for k in 0 1 2 3 4 5; do [ -s "sweep/seed_$k/spikes.h5" ] || fail "sweep: no result of seed $k"; done

# 7. Convert, and a scaling study whose rank counts agree.
OUTPUT=$work/dng13.h5 EDGES=$TEST_DATA/malecns_dng13_edges.csv sbatch --wait --chdir="$work" --cpus-per-task=1 --output="$work/convert.log" \
  "$SOURCE/jobs/convert.sbatch" >/dev/null || fail "convert.sbatch"
OUTPUT=$work/scaling STEPS=500 submit --wait --output="$work/scaling.log" "$SOURCE/jobs/scaling.sbatch" >/dev/null || fail "scaling.sbatch"
[ "$(wc -l <scaling/scaling.jsonl)" = 3 ] || fail "scaling: not three lines"
echo "slurm: all job files ran"
