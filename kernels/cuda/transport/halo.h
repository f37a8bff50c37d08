/* What the transports of device memory keep for a halo and a size of rows: its list of rows to send
 * on the device, and buffers. Nothing of it is freed before the transport closes: recorded passes
 * and other ranks hold on to the addresses. */
#ifndef FASCICLE_HALO_DEVICE_H
#define FASCICLE_HALO_DEVICE_H

#include "kernels/cuda/gpu/gpu.h"
#include "contract/graph.h"

struct halo_device {
  int64_t of; /* the halo's id */
  size_t row_bytes;
  eidx n_send, n_recv;
  lidx *send_row; /* [n_send] on the device */
  void *packed;   /* [n_send] outgoing rows; NULL where all rows are sent as they stand */
  void *arrived;  /* [n_send] incoming gradient rows */
  struct halo_device *next;
};

/* The one for this halo and size of rows, made on first use. `packs`: wants room to pack even if
 * all rows go; the same in every call. */
struct halo_device *halo_device_of(struct halo_device **list, const struct halo *halo,
                                   size_t row_bytes, bool packs);
void halo_device_free(struct halo_device **list);

/* Arrived rows [n_send][width] to the own rows they belong to, peer after
 * peer in ascending rank. */
void halo_device_add(const struct halo_device *d, const struct halo *halo, float *rows, int width);

#endif
