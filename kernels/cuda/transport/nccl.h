/* What the transports of GPUs offer beyond the table of transports. Only for a group whose `via` is
 * one of them.
 */
#ifndef FASCICLE_NCCL_ROAD_H
#define FASCICLE_NCCL_ROAD_H

#include "core/comm.h"
#include "peer.h"

/* Whether the group's transport is nccl or peer, with more than one rank. */
bool nccl_joins(const struct comm *comm);

/* The mapped memory of the group's GPUs, or NULL where rows go through NCCL. */
struct peer_link *nccl_peer(const struct comm *comm);

/* Queued on gpu_stream(): every rank's `bytes` bytes at `mine`, in rank order,
 * to all [size * bytes]. */
void nccl_all_gather(const struct comm *comm, const void *mine, size_t bytes, void *all);

#endif
