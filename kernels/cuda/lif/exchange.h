/* How the spikes of one rank's GPU reach the others: chosen by the group's transport, queued on the
 * stream.
 */
#ifndef FASCICLE_LIF_GPU_EXCHANGE_H
#define FASCICLE_LIF_GPU_EXCHANGE_H

#include "core/comm.h"
#include "link.h"

struct lif_gpu_exchange;

/* Collective. The exchange that comm->via offers between the devices of this group: stores into
 * each other's memory (peer), or all-gathers between launches (nccl); NULL, on every rank,
 * when it has none. first_of_rank [size + 1]; d->first and d->min_delay are known. `comm`
 * must outlive the exchange. */
struct lif_gpu_exchange *lif_gpu_exchange_open(const struct comm *comm, const struct lif_device *d,
                                               const int64_t *first_of_rank);
void lif_gpu_exchange_close(struct lif_gpu_exchange *exchange); /* collective; accepts NULL */

/* Queue steps t .. t + n - 1 with the spikes of all ranks delivered; own masks to mask
 * [n][n_words]. All ranks queue the same t and n. */
void lif_gpu_exchange_run(struct lif_gpu_exchange *exchange, const struct lif_device *d,
                          int n_blocks, int64_t t, int n, uint32_t *mask);

#endif
