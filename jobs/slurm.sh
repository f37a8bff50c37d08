# shellcheck shell=bash
# Sourced by the sbatch files: launch a verb on all ranks, and put the job back into the queue when the program asks for it.
# shellcheck source=env.sh
. "${FASCICLE_JOBS:?}/env.sh"

# launch VERB WORDS...: one rank a task. --kill-on-bad-exit: a rank that dies must not leave the others waiting. Each rank sees
# all GPUs of its host and takes the one of its local rank. srun takes no --cpus-per-task from sbatch by itself.
launch() {
  launched=$(date +%s)
  export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1} OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
  srun --mpi=pmix --kill-on-bad-exit=1 "$FASCICLE" "$@"
}

# Was a checkpoint written since the launch?
has_progress() {
  [ -n "$(find "$1" -path '*/checkpoints/latest' -newermt "@${launched:?}" -print -quit 2>/dev/null)" ]
}

# finish CODE FOLDER: exit code 75 (or FOLDER/again) means "stopped on request with a checkpoint written: run again". 71, the watchdog, is how
# a node looks that has gone silent, before Slurm knows: run again too, but only while that gets somewhere.
finish() {
  local code=$1 folder=$2
  if { [ "$code" -eq 75 ] || [ -e "$folder/again" ] || { [ "$code" -eq 71 ] && has_progress "$folder"; }; } && [ "${SLURM_RESTART_COUNT:-0}" -lt "${MOST_RESTARTS:-50}" ]; then
    echo "requeue: restart $((${SLURM_RESTART_COUNT:-0} + 1)) of at most ${MOST_RESTARTS:-50}"
    scontrol requeue "$SLURM_JOB_ID"
  fi
  exit "$code"
}
