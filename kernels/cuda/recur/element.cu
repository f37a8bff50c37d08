/* The backward pass of each neuron by itself: the last microstep of a window, which no transposed
 * product comes before. */
#include "element.cuh"

using namespace recur_kernels;

namespace {

/* Rows are held as by L; nothing else of it matters here. */
template <class L> using element_layout = layout<L::G, L::R, L::V, L::G, 1, 1, L::MASK>;

template <class L, bool MIXED>
__global__ void __launch_bounds__(RECUR_THREADS)
    element_kernel(const __grid_constant__ element_args a, const columns c, const int n_own) {
  const int group = threadIdx.x / L::G, lane = threadIdx.x % L::G;
  const int at = blockIdx.x * L::GROUPS + group, row = min(at, n_own - 1);
  wait_for_previous_launch();
  let_next_launch_start();
  const lane_values<L> g = load<L>(a.d_state, row, lane, c), after = load<L>(a.after, row, lane, c);
  finish_element<L, MIXED>(a, c, row, RECUR_HAS_IN | RECUR_HAS_OUT, lane, at < n_own, g, after);
}

struct run_element {
  gpu_queue *queue;
  const recur_device *d;
  element_args args;
  template <class L, class INDEX, bool MIXED> void run() const {
    for_tiles<L>(d->batch, [&](columns c) {
      launch(queue, element_kernel<element_layout<L>, MIXED>,
             (d->n_own + L::GROUPS - 1) / L::GROUPS, args, c, d->n_own);
    });
  }
};

} // namespace

void recur_device_elementwise(gpu_queue *queue, const recur_device *d, int k) {
  with_layout(choice_of(d, &d->near_in), run_element{queue, d, element_of(d, k)});
}
