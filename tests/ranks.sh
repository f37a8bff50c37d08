#!/bin/bash
# ranks.sh N PROGRAM...: run a program on N ranks of this machine, also as root and with few cores.
n=$1
shift
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
if [ "$n" = 1 ]; then exec "$@"; fi
exec mpirun -q --bind-to none -n "$n" "$@"
