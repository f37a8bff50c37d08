/* The backward microstep of the recurrence: the transposed product and the gradients of edges, then
 * what follows for each neuron (element.cuh), in one launch. */
#include "element.cuh"
#include "launch.cuh"
#include "walk.cuh"

using namespace recur_kernels;

namespace {

/* ---- backward, transposed product and edge gradient ---- */

struct backward_args {
  columns cols;
  const recur_item *item;
  const void *col;
  const float *value;
  float *gradient;
  const void *q; /* of microstep k: float, or __nv_bfloat16 */
  const float *state;
  float *d_state;
  bool halo; /* rows of d_state are set, not added to */
  bool next; /* go on to q of microstep k - 1 */
};

template <class L, class INDEX, bool MIXED>
__global__ void __launch_bounds__(RECUR_THREADS, L::BLOCKS)
    backward_kernel(const __grid_constant__ backward_args a,
                    const __grid_constant__ element_args next) {
  const int group = threadIdx.x / L::G, lane = threadIdx.x % L::G;
  const recur_item *items = a.item + (int64_t)blockIdx.x * L::GROUPS;
  const recur_item item = items[group];
  const int most_shared = items[0].share, in_row = group & ((1 << item.share) - 1),
            row = max(item.row, 0);
  walk<L, INDEX, seen_q<MIXED>> w(item, in_row, lane, (const INDEX *)a.col, a.value);
  wait_for_previous_launch();
  let_next_launch_start();
  const lane_values<L> own = load<L>(a.state, row, lane, a.cols);
  lane_values<L> seen = own, g = nothing<L>();
#pragma unroll
  for (int i = 0; i < L::N; i++) seen.x[i] = rounded<seen_state<MIXED>>(own.x[i]);
  w.template run<true>((const seen_q<MIXED> *)a.q, a.cols, lane, seen, a.gradient, g);
  if (!gather_groups<L>(item, most_shared, lane, g)) return;
  const bool writes = item.row >= 0 && in_row == 0;
  if (!a.halo) {
    const lane_values<L> held = load<L>(a.d_state, row, lane, a.cols);
#pragma unroll
    for (int i = 0; i < L::N; i++) g.x[i] += held.x[i];
  }
  if (a.next)
    finish_element<L, MIXED>(next, a.cols, row, item.slots, lane, writes, g, own);
  else if (writes)
    store<L>(a.d_state, row, lane, a.cols, g);
}

/* ---- edges between the caller's order and the order by source ---- */

template <bool LINES>
__global__ void take_kernel(int64_t n, const uint32_t *edge, const int32_t *col, const float *value,
                            float *out_value, float *out_gradient) {
  const int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= n) return;
  put_edge<LINES>(out_value, (uint32_t)e, LINES ? col[e] : 0,
                  edge[e] == RECUR_NO_EDGE ? 0 : value[edge[e]]);
  out_gradient[e] = 0;
}

__global__ void give_kernel(int64_t n, const uint32_t *place, const float *out_gradient,
                            float *d_value) {
  wait_for_previous_launch();
  const int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (e < n) d_value[e] = out_gradient[place[e]];
}

__global__ void give_pair_kernel(int n, const float2 *d_pair, float *d_leak, float *d_bias) {
  const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (row < n) d_leak[row] = d_pair[row].x, d_bias[row] = d_pair[row].y;
}

/* ---- launching ---- */

struct run_backward {
  gpu_queue *queue;
  const recur_device *d;
  const recur_walk *walk;
  backward_args args;
  element_args next;
  template <class L, class INDEX, bool MIXED> void run() const {
    for_tiles<L>(d->batch, [&](columns c) {
      backward_args a = args;
      a.cols = c;
      launch(queue, backward_kernel<L, INDEX, MIXED>, walk->n_blocks, a, next);
    });
  }
};

void backward(gpu_queue *queue, const recur_device *d, int k, const recur_walk *walk, bool halo,
              bool next) {
  backward_args a = {};
  a.item = walk->item, a.col = columns_of(d, walk, d->out_value),
  a.value = values_of(d, d->out_value);
  a.gradient = d->out_gradient;
  a.q = q_at(d, k), a.state = state_at(d, k), a.d_state = d->d_state;
  a.halo = halo, a.next = next;
  const element_args e = next ? element_of(d, k - 1) : element_args{};
  choice c = choice_of(d, walk);
  c.backward = true;
  with_layout(c, run_backward{queue, d, walk, a, e});
}

int64_t edge_blocks(int64_t edges) {
  return (edges + RECUR_THREADS - 1) / RECUR_THREADS;
}

} // namespace

void recur_device_take(gpu_queue *queue, const recur_device *d) {
  if (d->n_out_edges == 0) return;
  const auto kernel = d->lines ? take_kernel<true> : take_kernel<false>;
  kernel<<<(unsigned)edge_blocks(d->n_out_edges), RECUR_THREADS, 0, queue->stream>>>(
      d->n_out_edges, d->out_edge, (const int32_t *)d->near_out.col, d->value, d->out_value,
      d->out_gradient);
  gpu_queue_note(queue, cudaGetLastError());
}

void recur_device_give(gpu_queue *queue, const recur_device *d) {
  const int64_t edges = d->n_near + d->n_far;
  launch(queue, give_kernel, edge_blocks(edges), edges, d->out_place,
         (const float *)d->out_gradient, d->d_value);
  if (d->n_own == 0) return;
  give_pair_kernel<<<row_blocks(d), RECUR_THREADS, 0, queue->stream>>>(
      d->n_own, (const float2 *)d->d_pair, d->d_leak, d->d_bias);
  gpu_queue_note(queue, cudaGetLastError());
}

void recur_device_transposed(gpu_queue *queue, const recur_device *d, int k, bool next) {
  backward(queue, d, k, &d->near_out, false, next);
}

void recur_device_transposed_halo(gpu_queue *queue, const recur_device *d, int k) {
  backward(queue, d, k, &d->far_out, true, false);
}
