/* One rank's graph: own and remote sources, and who sends which rows to whom. */
#include "halo.h"
#include "core/mem.h"

#include <stdint.h>

/* A set of global rows: one bit each, and before each word the number of members in front of it, so
 * that a member's rank is a popcount away. N / 8 + N / 16 bytes, whatever the number of edges. */
struct rowset {
  int64_t n_words;
  uint64_t *word;  /* [n_words] */
  uint32_t *below; /* [n_words] */
};

static struct rowset rowset_init(gidx n_rows) {
  const int64_t n_words = n_rows / 64 + 1;
  return (struct rowset){n_words, NEW_ZERO(uint64_t, n_words), NEW(uint32_t, n_words)};
}

static void rowset_free(struct rowset *set) {
  mem_free(set->word), mem_free(set->below);
  *set = (struct rowset){0};
}

/* Number the members; returns how many there are. */
static int64_t rowset_count(struct rowset *set) {
  int64_t n = 0;
  for (int64_t w = 0; w < set->n_words; w++) {
    set->below[w] = (uint32_t)n;
    n += __builtin_popcountll(set->word[w]);
    if (n > INT32_MAX)
      DIE(EXIT_RUNTIME, "a rank needs over %d rows of other ranks; use more ranks", INT32_MAX);
  }
  return n;
}

static lidx rowset_rank(const struct rowset *set, gidx row) {
  const uint64_t before = ((uint64_t)1 << (row & 63)) - 1;
  return (lidx)(set->below[row >> 6] +
                (uint32_t)__builtin_popcountll(set->word[row >> 6] & before));
}

static void rowset_list(const struct rowset *set, gidx *row) {
  for (int64_t w = 0; w < set->n_words; w++)
    for (uint64_t bits = set->word[w]; bits; bits &= bits - 1)
      *row++ = w * 64 + __builtin_ctzll(bits);
}

static bool is_own(const struct graph *graph, gidx row) {
  return row >= graph->first && row < graph->first + graph->n_own;
}

/* The sources that other ranks own; counts the two halves of the edges. */
static struct rowset find_remote(struct graph *graph, const eidx *row_ptr, const gidx *source) {
  struct rowset remote = rowset_init(graph->n_global);
  const eidx n_edges = row_ptr[graph->n_own];
  eidx n_near = 0;
  for (eidx e = 0; e < n_edges; e++) {
    const gidx row = source[e];
    if (row < 0 || row >= graph->n_global)
      DIE(EXIT_INPUT, "edge %lld of this rank's slice has source row %lld of %lld", (long long)e,
          (long long)row, (long long)graph->n_global);
    if (is_own(graph, row))
      n_near++;
    else
      remote.word[row >> 6] |= (uint64_t)1 << (row & 63);
  }
  graph->near.n_edges = n_near, graph->far.n_edges = n_edges - n_near;
  return remote;
}

bool halo_takes_all(int64_t halo_rows, int64_t gather_rows) {
  return gather_rows > 0 && halo_rows >= gather_rows - gather_rows / 8;
}

static bool choose_all(const struct comm *comm, enum halo_kind kind, gidx n_global,
                       int64_t n_halo) {
  if (kind != HALO_AUTO || comm->size == 1) return kind == HALO_ALL && comm->size > 1;
  comm_sum_i64(comm, &n_halo, 1);
  return halo_takes_all(n_halo, (comm->size - 1) * n_global);
}

/* The rows of other ranks that this one will hold, numbered. */
static struct rowset find_halo(const struct comm *comm, struct graph *graph, const eidx *row_ptr,
                               const gidx *source, enum halo_kind kind) {
  struct rowset remote = find_remote(graph, row_ptr, source);
  int64_t n_halo = rowset_count(&remote);
  graph->halo.needed = (lidx)n_halo;
  graph->halo.all = choose_all(comm, kind, graph->n_global, n_halo);
  if (graph->halo.all) {
    for (gidx row = 0; row < graph->n_global; row++)
      if (!is_own(graph, row)) remote.word[row >> 6] |= (uint64_t)1 << (row & 63);
    n_halo = rowset_count(&remote);
  }
  if (n_halo + graph->n_own > INT32_MAX)
    DIE(EXIT_RUNTIME, "%lld own and halo rows on one rank, more than %d; use more ranks",
        (long long)(n_halo + graph->n_own), INT32_MAX);
  graph->n_halo = (lidx)n_halo;
  graph->halo_gid = NEW(gidx, n_halo);
  rowset_list(&remote, graph->halo_gid);
  return remote;
}

static void csr_room(struct csr *csr, lidx n_rows, eidx **edge) {
  csr->n_rows = n_rows;
  csr->row_ptr = NEW_ZERO(eidx, (int64_t)n_rows + 1);
  csr->col = NEW(lidx, csr->n_edges);
  *edge = NEW(eidx, csr->n_edges);
}

/* Edges keep their order within a row, so both halves stay sorted by source node id. */
static void split_edges(struct graph *graph, const eidx *row_ptr, const gidx *source,
                        const struct rowset *remote) {
  struct csr *near = &graph->near, *far = &graph->far;
  csr_room(near, graph->n_own, &graph->near_edge);
  csr_room(far, graph->n_own, &graph->far_edge);
  eidx a = 0, b = 0;
  for (lidx i = 0; i < graph->n_own; i++) {
    for (eidx e = row_ptr[i]; e < row_ptr[i + 1]; e++)
      if (is_own(graph, source[e]))
        near->col[a] = (lidx)(source[e] - graph->first), graph->near_edge[a++] = e;
      else
        far->col[b] = graph->n_own + rowset_rank(remote, source[e]), graph->far_edge[b++] = e;
    near->row_ptr[i + 1] = a, far->row_ptr[i + 1] = b;
  }
}

/* How many of our halo rows each rank owns: the halo and the ranks' intervals both ascend. */
static void count_owners(const struct graph *graph, int size, int64_t *n_of_rank) {
  lidx slot = 0;
  for (int r = 0; r < size; r++) {
    const lidx start = slot;
    while (slot < graph->n_halo && graph->halo_gid[slot] < graph->first_of_rank[r + 1]) slot++;
    n_of_rank[r] = slot - start;
  }
}

/* Turn the rows asked for by others into own rows to send; only ranks with traffic become peers. */
static void fill_halo(struct graph *graph, int size, const int64_t *n_recv, const int64_t *n_send,
                      const gidx *asked) {
  struct halo *halo = &graph->halo;
  eidx total = 0;
  for (int r = 0; r < size; r++) halo->n_peers += n_recv[r] || n_send[r], total += n_send[r];
  halo->peer = NEW(int, halo->n_peers);
  halo->send_ptr = NEW_ZERO(eidx, halo->n_peers + 1);
  halo->recv_ptr = NEW_ZERO(eidx, halo->n_peers + 1);
  halo->send_row = NEW(lidx, total);
  for (int r = 0, p = 0; r < size; r++) {
    if (!n_recv[r] && !n_send[r]) continue;
    halo->peer[p] = r;
    halo->send_ptr[p + 1] = halo->send_ptr[p] + n_send[r];
    halo->recv_ptr[p + 1] = halo->recv_ptr[p] + n_recv[r];
    p++;
  }
  for (eidx i = 0; i < total; i++) {
    if (!is_own(graph, asked[i]))
      DIE(EXIT_RUNTIME, "another rank asks for row %lld, which is not in our rows %lld to %lld",
          (long long)asked[i], (long long)graph->first, (long long)(graph->first + graph->n_own));
    halo->send_row[i] = (lidx)(asked[i] - graph->first);
  }
}

/* A list's length and its rows, order included, as one number. */
static int64_t list_mark(eidx n, gidx first, const lidx *row, const gidx *gid) {
  uint64_t mark = (uint64_t)n;
  for (eidx i = 0; i < n; i++)
    mark = (mark ^ (uint64_t)(row ? first + row[i] : gid[i])) * 0x9E3779B97F4A7C15u + 1;
  return (int64_t)mark;
}

/* Every pair of ranks must mean the same rows in the same order, otherwise states would silently
 * land in the wrong neuron. */
static void check_lists(const struct comm *comm, const struct graph *graph) {
  const struct halo *halo = &graph->halo;
  int64_t *ours = NEW_ZERO(int64_t, comm->size), *one = NEW(int64_t, comm->size);
  int64_t *expected = NEW_ZERO(int64_t, comm->size), *counts = NEW(int64_t, comm->size);
  for (int p = 0; p < halo->n_peers; p++) {
    const eidx s = halo->send_ptr[p], r = halo->recv_ptr[p];
    ours[halo->peer[p]] =
        list_mark(halo->send_ptr[p + 1] - s, graph->first, halo->send_row + s, NULL);
    expected[halo->peer[p]] = list_mark(halo->recv_ptr[p + 1] - r, 0, NULL, graph->halo_gid + r);
  }
  for (int r = 0; r < comm->size; r++) one[r] = 1;
  int64_t *theirs = comm_swap_varied(comm, ours, one, sizeof *ours, counts);
  for (int r = 0; r < comm->size; r++)
    if (theirs[r] != expected[r])
      DIE(EXIT_RUNTIME, "the rows that rank %d sends are not the rows expected here", r);
  mem_free(ours), mem_free(one), mem_free(expected), mem_free(counts), mem_free(theirs);
}

static void find_peers(const struct comm *comm, struct graph *graph) {
  int64_t *n_recv = NEW(int64_t, comm->size), *n_send = NEW(int64_t, comm->size);
  count_owners(graph, comm->size, n_recv);
  gidx *asked = comm_swap_varied(comm, graph->halo_gid, n_recv, sizeof(gidx), n_send);
  fill_halo(graph, comm->size, n_recv, n_send, asked);
  mem_free(asked), mem_free(n_recv), mem_free(n_send);
  check_lists(comm, graph);
}

void graph_build(const struct comm *comm, const gidx *first_of_rank, const eidx *row_ptr,
                 const gidx *source, enum halo_kind kind, struct graph *graph) {
  static int64_t built;
  const gidx first = first_of_rank[comm->rank], n_own = first_of_rank[comm->rank + 1] - first;
  if (n_own < 0 || n_own > INT32_MAX)
    DIE(EXIT_RUNTIME, "%lld rows on one rank, more than %d; use more ranks", (long long)n_own,
        INT32_MAX);
  *graph = (struct graph){.n_global = first_of_rank[comm->size],
                          .first = first,
                          .first_of_rank = first_of_rank,
                          .n_own = (lidx)n_own,
                          .halo.id = ++built};
  struct rowset remote = find_halo(comm, graph, row_ptr, source, kind);
  split_edges(graph, row_ptr, source, &remote);
  rowset_free(&remote);
  find_peers(comm, graph);
}

static void csr_free(struct csr *csr) {
  mem_free(csr->row_ptr), mem_free(csr->col);
  *csr = (struct csr){0};
}

void graph_free(struct graph *graph) {
  struct halo *halo = &graph->halo;
  csr_free(&graph->near), csr_free(&graph->far);
  mem_free(graph->near_edge), mem_free(graph->far_edge), mem_free(graph->halo_gid);
  mem_free(halo->peer), mem_free(halo->send_ptr), mem_free(halo->send_row),
      mem_free(halo->recv_ptr);
  *graph = (struct graph){0};
}
