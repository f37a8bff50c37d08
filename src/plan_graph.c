/* A graph's split in counts. */
#include "load.h"
#include "mem.h"
#include "plan.h"

#include <math.h>
#include <string.h>

enum { SLICE = 1 << 20 };

/* Counts of rows [first, last): edges from own rows, from others, and how many distinct others (`seen`, one
 * byte a row). */
static struct plan_share count_share(struct connectome_file *file, gidx first, gidx last,
                                     const uint32_t *row_of_node, uint8_t *seen, int64_t n_nodes) {
  struct plan_share share = {.n_own = last - first};
  if (first == last) return share;
  eidx from, to;
  connectome_row_ptr(file, first, 1, &from);
  connectome_row_ptr(file, last, 1, &to);
  memset(seen, 0, (size_t)n_nodes);
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
  for (int64_t i = 0; i < n_nodes; i++) share.n_halo += seen[i];
  mem_free(source);
  return share;
}

void plan_count(const struct comm *alone, struct connectome_file *file, int parts, struct plan_graph *g) {
  const struct connectome_facts *f = connectome_facts(file);
  *g = (struct plan_graph){.n_nodes = f->n_nodes,
                           .n_edges = f->n_edges,
                           .min_delay = f->n_edges ? f->min_delay : 1,
                           .max_delay = f->n_edges ? f->max_delay : 1,
                           .wide = f->max_in_impulse > INT32_MAX,
                           .real = true,
                           .parts = parts,
                           .n_shares = parts,
                           .share = NEW(struct plan_share, parts)};
  gidx *first = NEW(gidx, parts + 1);
  uint32_t *row_of_node = NEW(uint32_t, f->n_nodes);
  uint8_t *seen = NEW(uint8_t, f->n_nodes);
  load_split(alone, file, parts, first);
  connectome_row_of_node(file, row_of_node);
  for (int p = 0; p < parts; p++)
    g->share[p] = count_share(file, first[p], first[p + 1], row_of_node, seen, f->n_nodes);
  mem_free(first), mem_free(row_of_node), mem_free(seen);
}

/* E edges drawn from N sources touch N (1 - (1 - 1/N)^E) of them. */
static double distinct(double n, double draws) {
  return n > 0 ? n * -expm1(draws * log1p(-1 / fmax(n, 2))) : 0;
}

void plan_guess(int64_t n_nodes, eidx n_edges, int min_delay, int max_delay, int parts,
                struct plan_graph *g) {
  *g = (struct plan_graph){.n_nodes = n_nodes,
                           .n_edges = n_edges,
                           .min_delay = min_delay,
                           .max_delay = max_delay,
                           .parts = parts,
                           .n_shares = 1,
                           .share = NEW_ZERO(struct plan_share, 1)};
  struct plan_share *s = g->share;
  const eidx edges = (n_edges + parts - 1) / parts;
  s->n_own = (n_nodes + parts - 1) / parts;
  s->near = edges / parts;
  s->far = edges - s->near;
  s->n_halo = (int64_t)distinct((double)(n_nodes - s->n_own), (double)s->far);
}

void plan_graph_free(struct plan_graph *g) {
  mem_free(g->share);
  *g = (struct plan_graph){0};
}

const struct plan_share *plan_largest(const struct plan_graph *g) {
  const struct plan_share *most = g->share;
  for (int p = 1; p < g->n_shares; p++)
    if (g->share[p].near + g->share[p].far > most->near + most->far) most = &g->share[p];
  return most;
}
