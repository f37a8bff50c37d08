/* One window of the recurrence on arrays that are in GPU memory already: what the public library
 * hands its CUDA calls to. No MPI, no exits: every call returns what went
 * wrong. Built from kernels/cuda/library/recur_gpu.c, or from kernels/without_cuda/recur_gpu.c
 * where there is no CUDA. */
#ifndef FASCICLE_RECUR_GPU_H
#define FASCICLE_RECUR_GPU_H

#include "contract/recurrence.h"

#ifdef __cplusplus
extern "C" {
#endif

enum recur_gpu_code { RECUR_GPU_FINE, RECUR_GPU_NO_DEVICE, RECUR_GPU_NO_MEMORY, RECUR_GPU_ERROR };

struct recur_gpu_result {
  enum recur_gpu_code code;
  const char *text; /* constant; NULL where all went well */
};

/* Whether there is a GPU of that number which this build can use. */
struct recur_gpu_result recur_gpu_check(int device);

/* The tables of a graph for one batch size, in the memory of one GPU. Not changed by use. */
struct recur_gpu;

/* net->graph has no halo; net->shape.batch is used, steps and microsteps are not. caller [E]: the
 * caller's number of each edge of graph->near. Without net->want_gradient the tables serve forward
 * passes only. Host arrays are copied. Waits for the device. */
struct recur_gpu_result recur_gpu_open(const struct recur_net *net, const eidx *caller, int device,
                                       struct recur_gpu **tables);
void recur_gpu_close(struct recur_gpu *tables); /* accepts NULL */

/* All arrays in device memory, 16-byte aligned, layouts as in src/api/fascicle.h;
 * NULL where not wanted. */
struct recur_gpu_window {
  int batch, steps, microsteps;
  bool want_gradient;
  const float *edge_values, *leak, *bias, *drives, *state0;
  float *out, *state_end; /* forward */
  const float *d_out;     /* backward */
  float *d_edge_values, *d_leak, *d_bias, *d_drives, *d_state0;
  void *workspace;
  void *stream; /* cudaStream_t; all work is queued there, nothing waits, nothing is allocated */
};

int64_t recur_gpu_workspace(const struct recur_net *net, const struct recur_gpu_window *shape);

struct recur_gpu_result recur_gpu_forward(const struct recur_gpu *tables,
                                          const struct recur_gpu_window *w);
struct recur_gpu_result recur_gpu_backward(const struct recur_gpu *tables,
                                           const struct recur_gpu_window *w);

#ifdef __cplusplus
}
#endif
#endif
