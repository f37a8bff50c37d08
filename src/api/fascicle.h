/* libfascicle: the leaky-tanh recurrence on a fixed directed graph, forward and backward, for other
 * programs.
 *
 * N nodes, E edges source[e] -> target[e] with values v_e; leak a_i in (0, 1) and bias b_i per
 * node; B columns of batch, T steps of M microsteps each, K = T M. With V[target_e, source_e] = v_e
 * and t = floor(k / M):
 *
 *   z_k = V s_k + d_t + b,   s_{k+1} = (1 - a) s_k + a tanh(z_k),   out_t = s_{(t+1) M}
 *
 * d_t is the drive of the input nodes. The backward pass gives the gradients of a scalar L with
 * respect to edge values, leak, bias, drives and first state from dL/dout. No matrix of the size N
 * x N is formed, and only the states are kept between the two passes.
 *
 *   struct fascicle_graph *graph;
 *   struct fascicle_graph_spec spec = {.n_nodes = N, .n_edges = E, .source = src, .target = dst,
 *                                      .n_inputs = n_in, .input_nodes = in};
 *   if (fascicle_graph_create(&spec, &graph)) puts(fascicle_last_error());
 *   struct fascicle_shape shape = {.batch = 32, .steps = 64, .microsteps = 2, .want_gradient = 1};
 *   int64_t bytes = fascicle_workspace_bytes(graph, &shape);
 *   void *workspace = malloc(bytes);
 *   struct fascicle_inputs inputs = {.edge_values = v, .leak = a, .bias = b, .drives = d};
 *   fascicle_forward(graph, &shape, &inputs, out, NULL, workspace, bytes, NULL);
 *   struct fascicle_gradients gradients = {.edge_values = dv, .leak = da, .bias = db};
 *   fascicle_backward(graph, &shape, &inputs, d_out, &gradients, workspace, bytes, NULL);
 *   fascicle_graph_destroy(graph);
 *
 * All arrays are plain C order (the last index runs fastest), float32 unless said otherwise, and
 * belong to the caller. Arrays per edge are in the order in which the caller gave the edges.
 * Nothing is allocated in fascicle_forward and fascicle_backward. On FASCICLE_CUDA every float
 * array and the workspace stand in memory of the graph's GPU (drives and their gradient at
 * multiples of 16 bytes), the passes only queue work on `stream` and may be captured in a CUDA
 * graph; what a batch size needs besides (14 to 18 bytes an edge of device memory) is prepared by
 * the first fascicle_workspace_bytes of that batch, which waits for the device, and kept until the
 * graph is destroyed. A graph may be used by several threads at once, each with a workspace of its
 * own. The same call on the same machine gives the same bits, whatever the number of threads;
 * FASCICLE_SIMD=plain|avx2|avx512 in the environment chooses instructions, whose results differ in
 * the last digits. Relative L2 error against float64: under 1e-6. */
#ifndef FASCICLE_H
#define FASCICLE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FASCICLE_API_VERSION 1

#if defined(__GNUC__)
#define FASCICLE_API __attribute__((visibility("default")))
#else
#define FASCICLE_API
#endif

enum fascicle_device {
  FASCICLE_CPU = 0, /* arrays in host memory; `stream` must be NULL */
  FASCICLE_CUDA = 1 /* arrays in memory of the GPU `device_index`; work is ordered on the CUDA
                       stream `stream` */
};

enum fascicle_result {
  FASCICLE_OK = 0,
  FASCICLE_BAD_ARGUMENT = 1,
  FASCICLE_OUT_OF_MEMORY = 2,
  FASCICLE_SMALL_WORKSPACE = 3,
  FASCICLE_NO_DEVICE = 4,   /* this library was built without that device, or there is none */
  FASCICLE_DEVICE_ERROR = 5 /* the GPU reported an error; its text is in fascicle_last_error */
};

/* What went wrong in this thread's last call that did not return FASCICLE_OK: one line. */
FASCICLE_API const char *fascicle_last_error(void);

/* FASCICLE_API_VERSION of the library in use. */
FASCICLE_API int fascicle_api_version(void);

/* ---- graph: made once, not changed by use ---- */

struct fascicle_graph_spec {
  int64_t n_nodes, n_edges;       /* 1 <= n_nodes < 2^31 */
  const int64_t *source, *target; /* [n_edges] nodes 0 .. n_nodes - 1 in any order; self-loops and
                                     parallel edges are edges like others. Host memory, copied */
  int64_t n_inputs;               /* 0: no drive */
  const int64_t *input_nodes;     /* [n_inputs] distinct, in the order of the rows of `drives` */
  int64_t n_outputs;           /* with output_nodes NULL: not looked at, every node is an output */
  const int64_t *output_nodes; /* [n_outputs] distinct, in the order of the columns of `out` */
  enum fascicle_device device;
  int device_index;
};

struct fascicle_graph;

/* Takes 24 bytes an edge and 40 a node on the CPU. Free with
 * fascicle_graph_destroy, which accepts NULL. */
FASCICLE_API int fascicle_graph_create(const struct fascicle_graph_spec *spec,
                                       struct fascicle_graph **graph);
FASCICLE_API void fascicle_graph_destroy(struct fascicle_graph *graph);

/* ---- one window ---- */

struct fascicle_shape {
  int32_t batch, steps, microsteps; /* B, T, M >= 1 */
  int32_t want_gradient; /* 0: only the two newest states are kept, fascicle_backward must not be
                            called */
  int32_t n_threads;     /* 0: what OpenMP takes by itself */
};

struct fascicle_inputs {
  const float *edge_values; /* [E] */
  const float *leak;        /* [N] in (0, 1) */
  const float *bias;        /* [N] */
  const float *drives;      /* [T][n_inputs][B] */
  const float *state0;      /* [B][N], or NULL for zeros */
};

/* Each may be NULL when it is not wanted. Set, not added to. */
struct fascicle_gradients {
  float *edge_values; /* [E] */
  float *leak;        /* [N] */
  float *bias;        /* [N] */
  float *drives;      /* [T][n_inputs][B] */
  float *state0;      /* [B][N] */
};

/* Bytes of workspace for one window, -1 for a bad shape. Mostly 4 N B (K +
 * 1) with want_gradient. */
FASCICLE_API int64_t fascicle_workspace_bytes(const struct fascicle_graph *graph,
                                              const struct fascicle_shape *shape);

/* out [T][B][n_outputs] (NULL: not wanted): the states of the output nodes after each step;
 * state_end [B][N] or NULL. The workspace (any alignment, `bytes` at least what
 * fascicle_workspace_bytes says) holds the states until fascicle_backward. */
FASCICLE_API int fascicle_forward(const struct fascicle_graph *graph,
                                  const struct fascicle_shape *shape,
                                  const struct fascicle_inputs *inputs, float *out,
                                  float *state_end, void *workspace, int64_t bytes, void *stream);

/* d_out [T][B][n_outputs] = dL/dout. Shape, inputs and workspace as they were in fascicle_forward.
 * May be called again with another d_out. */
FASCICLE_API int fascicle_backward(const struct fascicle_graph *graph,
                                   const struct fascicle_shape *shape,
                                   const struct fascicle_inputs *inputs, const float *d_out,
                                   const struct fascicle_gradients *gradients, void *workspace,
                                   int64_t bytes, void *stream);

#ifdef __cplusplus
}
#endif

#endif
