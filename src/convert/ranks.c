/* The shares of the edge table that ranks have read, compared and joined on rank 0. */
#include "ranks.h"
#include "core/mem.h"
#include "core/watchdog.h"

#include <string.h>

/* Do two ranks hold edges of different kinds? */
static bool kinds_clash(const struct comm *comm, uint64_t mine) {
  uint64_t *kind = NEW(uint64_t, comm->size), seen = 0;
  bool clash = false;
  comm_gather(comm, &mine, sizeof *kind, kind);
  for (int r = 0; r < comm->size; r++) {
    clash |= seen && kind[r] && kind[r] != seen;
    if (kind[r]) seen = kind[r];
  }
  mem_free(kind);
  return clash;
}

enum convert_shares convert_compare(const struct comm *comm, const struct convert_share *share,
                                    const struct status *mine) {
  int64_t worst = mine->code == 0 ? SHARES_FIT : blames_input(mine) ? SHARES_CLASH : SHARES_STOP;
  comm_max_i64(comm, &worst, 1);
  if (worst == SHARES_FIT && kinds_clash(comm, share->kind)) return SHARES_CLASH;
  return (enum convert_shares)worst;
}

/* ---- from rank to rank ---- */

/* What comes before the arrays. */
struct head {
  int64_t n_edges, n_ids, text_bytes, rows, kept;
  bool has_delay; /* the same on every rank: all read the same columns */
  int64_t dropped[MAX_REASONS];
  char sha256[DIGEST_TEXT];
};

static struct head head_of(const struct convert_share *share) {
  const struct ids *ids = &share->nodes->ids;
  struct head h = {.n_edges = share->edges->n,
                   .n_ids = ids->n - share->known,
                   .rows = share->account->facts.rows,
                   .kept = share->account->kept,
                   .has_delay = share->edges->delay != NULL};
  if (ids->names && h.n_ids) h.text_bytes = ids->at[ids->n] - ids->at[share->known];
  for (int r = 0; r < share->account->n_reasons; r++) h.dropped[r] = share->account->reason[r].rows;
  memcpy(h.sha256, share->account->facts.sha256, sizeof h.sha256);
  return h;
}

static void send_share(const struct comm *comm, const struct convert_share *share) {
  const struct head h = head_of(share);
  const struct ids *ids = &share->nodes->ids;
  const struct edges *e = share->edges;
  comm_send(comm, &h, sizeof h, 0);
  if (h.n_ids) comm_send(comm, ids->id + share->known, h.n_ids * (int64_t)sizeof *ids->id, 0);
  if (ids->names && h.n_ids) {
    comm_send(comm, ids->at + share->known, (h.n_ids + 1) * (int64_t)sizeof *ids->at, 0);
    comm_send(comm, ids->text + ids->at[share->known], h.text_bytes, 0);
    comm_send(comm, ids->blanks + share->known, h.n_ids * (int64_t)sizeof *ids->blanks, 0);
  }
  comm_send(comm, e->source, e->n * (int64_t)sizeof *e->source, 0);
  comm_send(comm, e->target, e->n * (int64_t)sizeof *e->target, 0);
  comm_send(comm, e->weight, e->n * (int64_t)sizeof *e->weight, 0);
  if (e->delay) comm_send(comm, e->delay, e->n * (int64_t)sizeof *e->delay, 0);
}

/* The ids that a rank found; returns the index here of each [h->n_ids]. */
static uint32_t *receive_ids(const struct comm *comm, const struct convert_share *share,
                             const struct head *h, int from) {
  struct ids ids = {.names = share->nodes->ids.names, .n = h->n_ids, .id = NEW(uint64_t, h->n_ids)};
  comm_receive(comm, ids.id, h->n_ids * (int64_t)sizeof *ids.id, from);
  if (ids.names) {
    ids.at = NEW(int64_t, h->n_ids + 1), ids.text = NEW(char, h->text_bytes);
    ids.blanks = NEW(uint32_t, h->n_ids);
    comm_receive(comm, ids.at, (h->n_ids + 1) * (int64_t)sizeof *ids.at, from);
    comm_receive(comm, ids.text, h->text_bytes, from);
    comm_receive(comm, ids.blanks, h->n_ids * (int64_t)sizeof *ids.blanks, from);
    for (int64_t i = h->n_ids; i >= 0; i--) ids.at[i] -= ids.at[0];
  }
  uint32_t *index = ids_join(&share->nodes->ids, &ids);
  ids_free(&ids);
  return index;
}

static void rename_ends(uint32_t *end, int64_t n, int64_t known, const uint32_t *index) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; i++)
    if (end[i] >= known) end[i] = index[end[i] - known];
}

static void receive_share(const struct comm *comm, struct convert_share *share, int from) {
  struct edges *e = share->edges;
  struct head h;
  pulse("joining the ranks' edges");
  comm_receive(comm, &h, sizeof h, from);
  ASSERT(h.has_delay == (e->delay != NULL));
  uint32_t *index = h.n_ids ? receive_ids(comm, share, &h, from) : NULL;
  edges_reserve(e, e->n + h.n_edges, e->delay);
  comm_receive(comm, e->source + e->n, h.n_edges * (int64_t)sizeof *e->source, from);
  comm_receive(comm, e->target + e->n, h.n_edges * (int64_t)sizeof *e->target, from);
  comm_receive(comm, e->weight + e->n, h.n_edges * (int64_t)sizeof *e->weight, from);
  if (e->delay) comm_receive(comm, e->delay + e->n, h.n_edges * (int64_t)sizeof *e->delay, from);
  rename_ends(e->source + e->n, h.n_edges, share->known, index);
  rename_ends(e->target + e->n, h.n_edges, share->known, index);
  e->n += h.n_edges;
  mem_free(index);
  share->account->kept += h.kept;
  share->account->facts.rows += h.rows;
  for (int r = 0; r < share->account->n_reasons; r++)
    share->account->reason[r].rows += h.dropped[r];
  if (*h.sha256) memcpy(share->account->facts.sha256, h.sha256, sizeof h.sha256);
}

void convert_join(const struct comm *comm, struct convert_share *share) {
  int64_t n_edges = share->edges->n;
  comm_sum_i64(comm, &n_edges, 1);
  if (comm->rank > 0) {
    ids_seal(&share->nodes->ids);
    watchdog_wait(); /* for our turn */
    send_share(comm, share);
    watchdog_wait_over();
    edges_free(share->edges);
    return;
  }
  edges_reserve(share->edges, n_edges, share->edges->delay);
  for (int r = 1; r < comm->size; r++) receive_share(comm, share, r);
}
