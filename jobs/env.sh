# shellcheck shell=bash
# What a site may have to change, in one place; sourced by every script of jobs/. Set the variables before to override.
# As root, or with fewer cores than ranks (laptops, containers), mpirun must be told that this is meant.
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
export OMPI_MCA_rmaps_base_oversubscribe=${OMPI_MCA_rmaps_base_oversubscribe:-1}
export OMPI_MCA_mpi_yield_when_idle=${OMPI_MCA_mpi_yield_when_idle:-1}
# Modules, on a cluster: module load gcc openmpi hdf5 cuda nccl
# Where the program is: the build in this tree, the one installed with these scripts, else the one in PATH.
if [ -z "${FASCICLE:-}" ]; then
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  for FASCICLE in "$here/../build/fascicle" "$here/../../../bin/fascicle" fascicle; do
    if command -v "$FASCICLE" >/dev/null; then break; fi
  done
  FASCICLE=$(command -v "$FASCICLE" || echo fascicle)
fi
export FASCICLE
