#include "halo_device.h"
#include "rows.h"

void halo_device_free(struct halo_device *d) {
  gpu_free(d->send_row), gpu_free(d->packed), gpu_free(d->arrived);
  *d = (struct halo_device){0};
}

static void room_for(void **buffer, size_t *have, size_t want) {
  if (want <= *have) return;
  gpu_free(*buffer);
  *buffer = gpu_zero((int64_t)want, 1);
  *have = want;
}

void halo_device_prepare(struct halo_device *d, const struct halo *h, size_t packed, size_t arrived) {
  if (d->of != h->id) {
    gpu_free(d->send_row);
    d->of = h->id;
    d->n_send = h->send_ptr[h->n_peers], d->n_recv = h->recv_ptr[h->n_peers];
    d->send_row = GPU_COPY_OF(lidx, h->send_row, d->n_send);
  }
  room_for(&d->packed, &d->packed_bytes, packed);
  room_for(&d->arrived, &d->arrived_bytes, arrived);
}

void halo_device_add(const struct halo_device *d, const struct halo *h, float *rows, int width) {
  for (int p = 0; p < h->n_peers; p++) {
    const eidx first = h->send_ptr[p];
    rows_add(gpu_stream(), rows, d->send_row + first, h->send_ptr[p + 1] - first, width,
             (const float *)d->arrived + first * width);
  }
}
