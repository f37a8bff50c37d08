/* Host side of the persistent window: its arrays on the device. */
#include "persist.h"
#include "kernels/cuda/gpu/arrays.h"
#include "kernels/cuda/layout/tables.h"

enum { MEASURED_MAJOR = 9 };

/* Bulk copies to a cluster need it, and so it is the only one measured. */
static bool is_measured_gpu(void) {
  int device, major;
  CHECK_CUDA(cudaGetDevice(&device));
  CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  return major == MEASURED_MAJOR;
}

bool persist_serves(const struct recur_net *net) {
  return persist_may_fit(net, gpu_processors()) && is_measured_gpu();
}

static bool tables_to_device(lidx n, const struct persist_edges *walk,
                             const struct persist_edges *readers, int blocks,
                             struct persist_tables *device) {
  struct persist_tables host;
  struct arrays from = {0}, to = {0};
  if (!persist_plan(n, walk, readers, blocks, &host)) return false;
  *device = host;
  persist_list_tables(&from, &host, n), persist_list_tables(&to, device, n);
  gpu_arrays_copy(&to, &from);
  arrays_close(&from);
  return true;
}

static bool all_tables_to_device(const struct recur_net *net, struct persist_device *p) {
  const struct graph *g = net->graph;
  struct recur_by_source s;
  if (!recur_by_source(g, &s))
    DIE(EXIT_RUNTIME, "out of memory: %lld edges by source", (long long)g->near.n_edges);
  const struct persist_edges in = {g->near.row_ptr, g->near.col, NULL},
                             out = {s.ptr, s.target, s.edge};
  const int blocks = persist_blocks(net, gpu_processors());
  const bool good =
      tables_to_device(g->n_own, &in, &out, blocks, &p->forward) &&
      (!net->want_gradient || tables_to_device(g->n_own, &out, &in, blocks, &p->backward));
  recur_by_source_free(&s);
  return good;
}

bool persist_open(const struct recur_net *net, const struct recur_device *d,
                  struct persist_device *p) {
  *p = (struct persist_device){.slices = net->shape.batch / PERSIST_COLUMNS};
  if (!persist_serves(net)) return false;
  if (all_tables_to_device(net, p) && persist_resident(p)) {
    struct arrays list = {0};
    persist_list_window(&list, p, d);
    gpu_arrays_open(&list);
    return true;
  }
  persist_close(d, p);
  return false;
}

void persist_close(const struct recur_device *d, struct persist_device *p) {
  struct arrays list = {0};
  persist_list_tables(&list, &p->forward, 0), persist_list_tables(&list, &p->backward, 0);
  persist_list_window(&list, p, d);
  gpu_arrays_close(&list);
  *p = (struct persist_device){0};
}
