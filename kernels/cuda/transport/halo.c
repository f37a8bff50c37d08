/* What a transport keeps on the device for each halo: its list of rows to send, and buffers. */
#include "halo.h"
#include "core/mem.h"
#include "rows.h"

void halo_device_free(struct halo_device **list) {
  for (struct halo_device *d = *list, *next; d; d = next) {
    next = d->next;
    gpu_free(d->send_row), gpu_free(d->packed), gpu_free(d->arrived);
    mem_free(d);
  }
  *list = NULL;
}

struct halo_device *halo_device_of(struct halo_device **list, const struct halo *h,
                                   size_t row_bytes, bool packs) {
  for (struct halo_device *d = *list; d; d = d->next)
    if (d->of == h->id && d->row_bytes == row_bytes) return d;
  struct halo_device *d = NEW_ZERO(struct halo_device, 1);
  d->of = h->id, d->row_bytes = row_bytes;
  d->n_send = h->send_ptr[h->n_peers], d->n_recv = h->recv_ptr[h->n_peers];
  d->send_row = GPU_COPY_OF(lidx, h->send_row, d->n_send);
  if (packs || !h->all) d->packed = gpu_zero(d->n_send, row_bytes);
  d->arrived = gpu_zero(d->n_send, row_bytes);
  d->next = *list;
  return *list = d;
}

void halo_device_add(const struct halo_device *d, const struct halo *h, float *rows, int width) {
  for (int p = 0; p < h->n_peers; p++) {
    const eidx first = h->send_ptr[p];
    rows_add(gpu_stream(), rows, d->send_row + first, h->send_ptr[p + 1] - first, width,
             (const float *)d->arrived + first * width);
  }
}
