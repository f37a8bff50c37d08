/* Exchange of spikes, from every rank to every rank: one fixed-size header each, and the spikes
 * behind it when there are any. What travels is the smaller of an index list and a bit mask.
 * Used by lif/run.c alone. */
#ifndef FASCICLE_LIF_EXCHANGE_H
#define FASCICLE_LIF_EXCHANGE_H

#include "core/comm.h"
#include "contract/lif.h"

struct lif_exchange;

/* n_own rows from first_of_rank [size + 1], which must outlive it; batches of at
 * most max_steps. Local. */
struct lif_exchange *lif_exchange_open(const struct comm *comm_facts, const gidx *first_of_rank,
                                       int max_steps);
void lif_exchange_close(struct lif_exchange *x);

/* Collective. `request` and `fault` become the strongest and the smallest of all ranks. Unless a
 * rank has a fault, `all` receives the spikes of all ranks by step (its arrays belong to x and live
 * until the next call, or are those of `mine` on one rank alone); with a fault it is empty. */
void lif_exchange_spikes(struct lif_exchange *x, const struct comm *comm,
                         const struct lif_spikes *mine, int *request, struct lif_fault *fault,
                         struct lif_spikes *all);

/* Collective: `request` and `fault` alone, where devices exchange the spikes by themselves. */
void lif_exchange_agree(struct lif_exchange *x, const struct comm *comm, int *request,
                        struct lif_fault *fault);

/* The smaller of two faults in the order of lif_fault_before. */
struct lif_fault lif_fault_smaller(struct lif_fault a, struct lif_fault b);

#endif
