/* Inside libfascicle: what its files share. This library uses kernels/interface/recur_window.h
 * and recur_gpu.h alone: no MPI, no exits. */
#ifndef FASCICLE_API_INTERNAL_H
#define FASCICLE_API_INTERNAL_H

#include "fascicle.h"
#include "core/types.h"

struct fascicle_graph {
  lidx n_nodes, n_in, n_out;
  eidx n_edges;
  /* By target, sources ascending, parallel edges in the caller's order. */
  eidx *in_ptr;    /* [N + 1] */
  lidx *in_source; /* [E] */
  eidx *caller;    /* [E] the caller's number of each edge */
  /* By source. */
  eidx *out_ptr;            /* [N + 1] */
  lidx *out_target;         /* [E] */
  eidx *out_edge;           /* [E] position by target */
  lidx *in_slot, *out_slot; /* [N] row of the drive, column of the output; -1 */
  struct api_gpu *gpu;      /* NULL on the CPU */
};

/* What fascicle_forward and fascicle_backward were given, checked; the workspace is aligned. */
struct api_call {
  const struct fascicle_shape *shape;
  const struct fascicle_inputs *inputs;
  void *workspace, *stream;
};
enum { API_ALIGN = 256 };

/* Note a failure for fascicle_last_error and return its code. */
int api_failure(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The code of this thread's last failure. */
int api_last_code(void);

/* One window on the CPU and on a GPU: bytes of workspace (-1: a failure is noted), the passes. */
int64_t api_cpu_workspace(const struct fascicle_graph *g, const struct fascicle_shape *shape);
int api_cpu_forward(const struct fascicle_graph *g, const struct api_call *call, float *out,
                    float *state_end);
int api_cpu_backward(const struct fascicle_graph *g, const struct api_call *call,
                     const float *d_out, const struct fascicle_gradients *gradients);
int64_t api_gpu_workspace(const struct fascicle_graph *g, const struct fascicle_shape *shape);
int api_gpu_forward(const struct fascicle_graph *g, const struct api_call *call, float *out,
                    float *state_end);
int api_gpu_backward(const struct fascicle_graph *g, const struct api_call *call,
                     const float *d_out, const struct fascicle_gradients *gradients);

/* Whether the GPU can be used; what the graph keeps on it, made empty (tables come with each batch
 * size) and freed. */
int api_gpu_check(int device);
int api_gpu_create(struct fascicle_graph *g, int device);
void api_gpu_destroy(struct api_gpu *gpu);

#endif
