/* A graph's split in counts. */
#include "partition/halo.h"
#include "graph/load.h"
#include "core/mem.h"
#include "cost.h"

#include <math.h>
#include <string.h>

enum { SLICE = 1 << 20 };

/* Counts of part p, whose sources on other ranks are marked in `seen` [n_nodes], one byte a row. */
static struct plan_share count_edges(struct connectome_file *file, gidx first, gidx last,
                                     const uint32_t *row_of_node, uint8_t *seen, int64_t n_nodes) {
  struct plan_share share = {.n_own = last - first};
  memset(seen, 0, (size_t)n_nodes);
  if (first == last) return share;
  eidx from, to;
  connectome_row_ptr(file, first, 1, &from);
  connectome_row_ptr(file, last, 1, &to);
  uint32_t *source = NEW(uint32_t, SLICE);
  for (eidx at = from; at < to; at += SLICE) {
    const eidx n = to - at < SLICE ? to - at : SLICE;
    connectome_sources(file, at, n, source);
    for (eidx e = 0; e < n; e++) {
      const gidx row = row_of_node[source[e]];
      if (row >= first && row < last)
        share.near++;
      else
        seen[row] = 1, share.far++;
    }
  }
  mem_free(source);
  return share;
}

/* Which of the rows seen are whose. */
static void count_halo(const struct plan_graph *g, const gidx *first, int part, const uint8_t *seen,
                       struct plan_share *share) {
  const int host = part / g->per_host;
  for (int p = 0; p < g->parts; p++) {
    int64_t n = 0;
    for (gidx row = first[p]; row < first[p + 1]; row++) n += seen[row];
    const bool near = p / g->per_host == host;
    share->n_halo += n, share->peers += n > 0;
    if (near) share->n_halo_host += n, share->peers_host += n > 0;
  }
}

/* An all-gather: every row of every other part. */
static void hold_all(const struct plan_graph *g, const gidx *first, int part,
                     struct plan_share *share) {
  const int from = part / g->per_host * g->per_host;
  const int to = from + g->per_host < g->parts ? from + g->per_host : g->parts;
  share->n_halo = g->n_nodes - share->n_own;
  share->n_halo_host = first[to] - first[from] - share->n_own;
  share->peers = g->parts - 1, share->peers_host = to - from - 1;
}

static bool takes_all(const struct plan_graph *g, enum halo_kind kind) {
  if (g->parts == 1 || kind != HALO_AUTO) return g->parts > 1 && kind == HALO_ALL;
  return halo_takes_all(g->needed, (g->parts - 1) * g->n_nodes);
}

void plan_count(const struct comm *alone, struct connectome_file *file, int parts, int per_host,
                enum halo_kind kind, struct plan_graph *g) {
  const struct connectome_facts *f = connectome_facts(file);
  ASSERT(parts >= 1 && per_host >= 1);
  *g = (struct plan_graph){.n_nodes = f->n_nodes,
                           .n_edges = f->n_edges,
                           .min_delay = f->n_edges ? f->min_delay : 1,
                           .max_delay = f->n_edges ? f->max_delay : 1,
                           .wide = f->max_in_impulse > INT32_MAX,
                           .real = true,
                           .parts = parts,
                           .per_host = per_host,
                           .n_shares = parts,
                           .share = NEW(struct plan_share, parts)};
  gidx *first = NEW(gidx, parts + 1);
  uint32_t *row_of_node = NEW(uint32_t, f->n_nodes);
  uint8_t *seen = NEW(uint8_t, f->n_nodes);
  load_split(alone, file, parts, first);
  connectome_row_of_node(file, row_of_node);
  for (int p = 0; p < parts; p++) {
    g->share[p] = count_edges(file, first[p], first[p + 1], row_of_node, seen, f->n_nodes);
    count_halo(g, first, p, seen, &g->share[p]);
    g->needed += g->share[p].n_halo;
  }
  g->all = takes_all(g, kind);
  for (int p = 0; p < parts && g->all; p++) hold_all(g, first, p, &g->share[p]);
  mem_free(first), mem_free(row_of_node), mem_free(seen);
}

/* E edges drawn from N sources touch N (1 - (1 - 1/N)^E) of them. */
static double distinct(double n, double draws) {
  return n > 0 ? n * -expm1(draws * log1p(-1 / fmax(n, 2))) : 0;
}

void plan_guess(enum halo_kind kind, struct plan_graph *g) {
  const int parts = g->parts, others = parts - 1,
            near = g->per_host < parts ? g->per_host - 1 : others;
  ASSERT(parts >= 1 && g->per_host >= 1 && g->n_nodes >= 0 && g->n_edges >= 0);
  struct plan_share *s = g->share = NEW_ZERO(struct plan_share, 1);
  const eidx edges = (g->n_edges + parts - 1) / parts;
  g->n_shares = 1;
  s->n_own = (g->n_nodes + parts - 1) / parts;
  s->near =
      g->far_share < 0 || parts == 1 ? edges / parts : (eidx)((double)edges * (1 - g->far_share));
  s->far = edges - s->near;
  s->n_halo = (int64_t)distinct((double)(g->n_nodes - s->n_own), (double)s->far);
  g->needed = s->n_halo * parts;
  g->all = takes_all(g, kind);
  if (g->all) s->n_halo = g->n_nodes - s->n_own;
  s->peers = s->n_halo < others ? (int)s->n_halo : others;
  s->peers_host = s->peers < near ? s->peers : near;
  s->n_halo_host = others > 0 ? (int64_t)((double)s->n_halo * near / others) : 0;
}

void plan_graph_free(struct plan_graph *g) {
  mem_free(g->share);
  *g = (struct plan_graph){0};
}

const struct plan_share *plan_largest(const struct plan_graph *g) {
  ASSERT(g->n_shares >= 1);
  const struct plan_share *most = g->share;
  for (int p = 1; p < g->n_shares; p++)
    if (g->share[p].near + g->share[p].far > most->near + most->far) most = &g->share[p];
  return most;
}
