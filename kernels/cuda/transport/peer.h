/* The lower-latency exchange between GPUs of one host: ranks map each other's memory, copy engines
 * carry the rows, and flags in device memory say when rows may come and when they have. No kernel
 * of a communication library takes multiprocessors away from the work beside it. */
#ifndef FASCICLE_PEER_H
#define FASCICLE_PEER_H

#include "core/comm.h"
#include "contract/graph.h"
#include "kernels/cuda/gpu/gpu.h"

struct peer_link;

/* Collective. NULL, on every rank, when some rank cannot map another's memory: other hosts, no peer
 * access.
 */
struct peer_link *peer_open(const struct comm *comm);
/* Collective: nobody frees what another still has mapped. */
void peer_close(struct peer_link *link, const struct comm *comm);

/* Whether this halo is exchanged by peer copies: every rank has rows and sends some, so that all
 * take part alike. Else the caller exchanges it otherwise. Collective on the first call for a halo,
 * and the same on every rank. */
bool peer_serves(struct peer_link *link, const struct comm *comm, const struct halo *halo,
                 lidx n_own);

/* Queued on `stream`. The own rows that `packed` holds (in the order of halo->send_row) go to the
 * halo rows of the peers' `rows`. Collective in the sense that all ranks pass the same array of
 * theirs, and make the same sequence of calls; the first call for an allocation talks over MPI. */
void peer_send_rows(struct peer_link *link, const struct comm *comm, const struct halo *halo,
                    void *rows, lidx n_own, size_t row_bytes, const void *packed,
                    cudaStream_t stream);

/* The halo rows of `rows` go to the peers' `arrived`, each rank's from its place in send order. */
void peer_send_gradients(struct peer_link *link, const struct comm *comm, const struct halo *halo,
                         const void *rows, lidx n_own, size_t row_bytes, void *arrived,
                         cudaStream_t stream);

/* Between two transfers: our halo rows (or `arrived`) may be overwritten, and so may theirs. */
void peer_make_ready(struct peer_link *link, cudaStream_t stream);

/* An array of every rank's, mapped here for as long as it is wanted: its bytes
 * are the callers' to use. */
struct peer_window;

/* Collective: `at` is ours, or NULL. NULL, on every rank, when some array cannot be mapped. */
struct peer_window *peer_window_open(const struct comm *comm, void *at);
/* Rank r's array. */
void *peer_window_at(const struct peer_window *window, int r);
/* Collective: afterwards everybody may free their array. Accepts NULL. */
void peer_window_close(struct peer_window *window, const struct comm *comm);

#endif
