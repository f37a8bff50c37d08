/* The backends and transports. The rest of the program may know the headers of this folder and
 * nothing else of kernels/: beside this one recur_window.h, the CPU recurrence on plain pointers
 * (libfascicle, and the bench's floors), and recur_gpu.h, the same on a GPU (libfascicle). Without
 * CUDA, backend_cuda and transport_nccl are built from kernels/without_cuda/backend.c: `start` says
 * "built without CUDA". */
#ifndef FASCICLE_BACKENDS_H
#define FASCICLE_BACKENDS_H

#include "contract/backend.h"
#include "contract/transport.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct backend backend_cpu;
/* The arithmetic of contract/lif.h read out, one neuron at a time: what tests
 * hold the others against. */
extern const struct lif_backend lif_plain;
extern const struct backend backend_cuda;
extern const struct transport transport_mpi;
/* mpi for arrays in device memory: staged through the host. */
extern const struct transport transport_staged;
extern const struct transport transport_nccl;
/* nccl, but halo rows go straight into the memory of the other GPUs of the host: faster where the
 * exchange is what a step waits for. */
extern const struct transport transport_peer;
/* Becomes peer where the GPUs can map each other's memory, nccl elsewhere. */
extern const struct transport transport_near;

#ifdef __cplusplus
}
#endif
#endif
