/* Ranks share the edge table: each reads its share of the record batches (or of the lines of text)
 * with ids and an account of its own; then all of it goes to rank 0, in the order of the table. */
#ifndef FASCICLE_CONVERT_RANKS_H
#define FASCICLE_CONVERT_RANKS_H

#include "core/comm.h"
#include "convert.h"

/* What one rank has read. */
struct convert_share {
  struct nodes *nodes;
  int64_t known; /* ids that all ranks had, under the same indices, before the edges */
  struct edges *edges;
  struct input_account *account;
  uint64_t kind; /* a hash of the only kind of edge seen; 0: none */
};

/* What becomes of the shares. */
enum convert_shares {
  SHARES_FIT,   /* they can be put together */
  SHARES_CLASH, /* one of them failed, or two hold edges of different kinds: the table must be read
                   from its start by one rank, whose line names the right row */
  SHARES_STOP   /* a rank failed for another reason than its input: all ranks fail */
};

/* Are the table or the options to blame? */
static inline bool blames_input(const struct status *s) {
  return s->code == EXIT_INPUT || s->code == EXIT_USAGE;
}

/* Collective. `mine`: how the reading of our share ended. */
enum convert_shares convert_compare(const struct comm *comm, const struct convert_share *share,
                                    const struct status *mine);

/* Collective: ids, edges and the account of all shares on rank 0; the others keep nothing. */
void convert_join(const struct comm *comm, struct convert_share *share);

#endif
