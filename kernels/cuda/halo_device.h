/* What both transports of device memory keep for a halo: its list of rows to send on the device, and buffers.
 */
#ifndef FASCICLE_HALO_DEVICE_H
#define FASCICLE_HALO_DEVICE_H

#include "gpu.h"
#include "graph.h"

struct halo_device {
  int64_t of; /* id of the halo whose send_row `send_row` is a copy of; 0: none */
  eidx n_send, n_recv;
  lidx *send_row;         /* [n_send] on the device */
  void *packed, *arrived; /* rows on their way out, gradient rows on their way in; on the device */
  size_t packed_bytes, arrived_bytes;
};

/* Make the copy for this halo, unless it is the one from before; at least `packed` and `arrived` bytes of
 * room. */
void halo_device_prepare(struct halo_device *d, const struct halo *halo, size_t packed, size_t arrived);
void halo_device_free(struct halo_device *d);

/* Arrived rows [n_send][width] to the own rows they belong to, peer after peer in ascending rank. */
void halo_device_add(const struct halo_device *d, const struct halo *halo, float *rows, int width);

#endif
