/* Segments -> one file. Each rank's segments follow each other in time, so they form one chain of
 * spikes in order; the chains are merged through a heap. */
#include "io/files/files.h"
#include "core/mem.h"
#include "core/numbers.h"
#include "inside.h"
#include "core/watchdog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- are the segments one whole? ---- */

static int by_rank(const void *a, const void *b) {
  const struct spikes_facts *x = &(*(struct spikes_file *const *)a)->facts;
  const struct spikes_facts *y = &(*(struct spikes_file *const *)b)->facts;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  return (x->first_step > y->first_step) - (x->first_step < y->first_step);
}

void spikes_sort(struct spikes_file **segment, int n) {
  if (n) qsort(segment, (size_t)n, sizeof *segment, by_rank);
}

static struct status check_same_run(struct spikes_file *const *segment, int n) {
  const struct spikes_facts *a = &segment[0]->facts;
  for (int i = 1; i < n; i++) {
    const struct spikes_facts *b = &segment[i]->facts;
    if (strcmp(a->graph_digest, b->graph_digest) || a->dt_ms != b->dt_ms ||
        a->n_nodes != b->n_nodes || strcmp(a->population, b->population))
      return failure(EXIT_INPUT,
                     "%s and %s are of different graphs or time steps: they are not one run",
                     segment[0]->path, segment[i]->path);
  }
  return fine();
}

static int by_time(const void *a, const void *b) {
  const struct spikes_facts *x = &(*(struct spikes_file *const *)a)->facts;
  const struct spikes_facts *y = &(*(struct spikes_file *const *)b)->facts;
  if (x->first_step != y->first_step) return x->first_step < y->first_step ? -1 : 1;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Where each rank's segments have come to. */
struct ends {
  int64_t most;         /* ranks there can be: as many as segments */
  int64_t ranks, *next; /* [ranks] the step that the rank's next segment must begin with */
};

static void ends_start(struct ends *e, int64_t ranks, int64_t step) {
  e->ranks = ranks;
  e->next = mem_grow(e->next, ranks, sizeof *e->next);
  for (int64_t r = 0; r < ranks; r++) e->next[r] = step;
}

static void ends_range(const struct ends *e, int64_t *low, int64_t *high) {
  *low = *high = e->next[0];
  for (int64_t r = 1; r < e->ranks; r++) {
    if (e->next[r] < *low) *low = e->next[r];
    if (e->next[r] > *high) *high = e->next[r];
  }
}

static struct status too_few(const struct spikes_file *segment, int64_t n) {
  return failure(EXIT_INPUT,
                 "%s: is of one of %lld ranks, but there are only %lld segments: some are missing",
                 segment->path, (long long)segment->facts.ranks, (long long)n);
}

/* The next segment in order of time. The number of ranks changes only where all of
 * them stopped: a resume. */
static struct status ends_add(struct ends *e, const struct spikes_file *segment) {
  const struct spikes_facts *f = &segment->facts;
  int64_t low, high;
  ends_range(e, &low, &high);
  if (f->ranks != e->ranks && low != high)
    return failure(
        EXIT_INPUT,
        "%s: a segment before it is missing: one of %lld ranks ends at step %lld, another at %lld",
        segment->path, (long long)e->ranks, (long long)low - 1, (long long)high - 1);
  if (f->ranks > e->most) return too_few(segment, e->most);
  if (f->ranks != e->ranks) ends_start(e, f->ranks, low);
  if (f->rank < 0 || f->rank >= e->ranks)
    return failure(EXIT_INPUT, "%s: is of rank %lld of %lld", segment->path, (long long)f->rank,
                   (long long)e->ranks);
  if (f->first_step != e->next[f->rank])
    return failure(EXIT_INPUT,
                   "%s: begins at step %lld, but the segments of its rank before it end at step "
                   "%lld: one is missing",
                   segment->path, (long long)f->first_step, (long long)e->next[f->rank] - 1);
  e->next[f->rank] = f->last_step + 1;
  return fine();
}

static struct status check_steps(struct spikes_file **timed, int n, int64_t *last) {
  struct ends e = {.most = n};
  struct status s = fine();
  int64_t high;
  if (timed[0]->facts.ranks > n) return too_few(timed[0], n);
  ends_start(&e, timed[0]->facts.ranks, timed[0]->facts.first_step);
  for (int i = 0; i < n && !s.code; i++) s = ends_add(&e, timed[i]);
  ends_range(&e, last, &high);
  --*last;
  mem_free(e.next);
  return s;
}

struct status spikes_complete(struct spikes_file *const *segment, int n, int64_t *last) {
  TRY(check_same_run(segment, n));
  struct spikes_file **timed = NEW(struct spikes_file *, n);
  memcpy(timed, segment, (size_t)n * sizeof *timed);
  qsort(timed, (size_t)n, sizeof *timed, by_time);
  const struct status s = check_steps(timed, n, last);
  mem_free(timed);
  return s;
}

/* ---- chains and their heap ---- */

struct chain {
  struct spikes_file **segment; /* the next ones, n of them */
  int n;
  int64_t *step; /* what was read and is not yet taken: [at, filled) */
  nodeid *node;
  int64_t room, at, filled, read; /* read: spikes of segment[0] that were read */
};

/* Make sure that the chain's next spike is at hand; false at its end. */
static bool chain_fill(struct chain *c) {
  while (c->at == c->filled) {
    while (c->n && c->read == c->segment[0]->n) c->segment++, c->n--, c->read = 0;
    if (c->n == 0) return false;
    const int64_t left = c->segment[0]->n - c->read, want = left < H5_CHUNK ? left : H5_CHUNK;
    if (want > c->room) {
      mem_free(c->step), mem_free(c->node);
      c->step = NEW(int64_t, want), c->node = NEW(nodeid, want);
      c->room = want;
    }
    spikes_read(c->segment[0], c->read, want, c->step, c->node);
    c->read += want, c->at = 0, c->filled = want;
  }
  return true;
}

static bool comes_before(const struct chain *a, const struct chain *b) {
  const int64_t x = a->step[a->at], y = b->step[b->at];
  return x != y ? x < y : a->node[a->at] < b->node[b->at];
}

static void sift(struct chain **heap, int n, int i) {
  for (int child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && comes_before(heap[child + 1], heap[child])) child++;
    if (!comes_before(heap[child], heap[i])) return;
    struct chain *t = heap[i];
    heap[i] = heap[child], heap[child] = t;
  }
}

/* One chain for each rank; segments are sorted by rank. */
static struct chain *make_chains(struct spikes_file **segment, int n, int *n_chains) {
  struct chain *chain = mem_zero(n, sizeof *chain);
  *n_chains = 0;
  for (int i = 0; i < n; i++) {
    if (i == 0 || segment[i]->facts.rank != segment[i - 1]->facts.rank)
      chain[(*n_chains)++].segment = &segment[i];
    chain[*n_chains - 1].n++;
  }
  return chain;
}

/* ---- writing the merged spikes ---- */

struct sink {
  struct h5_file *file;
  bool packed;
  double dt_ms;
  char node_ids[SPIKES_PATH], steps[SPIKES_PATH], times[SPIKES_PATH];
  int64_t *step, done, n, piece;
  nodeid *node;
  double *time;
  struct sha256 hash;
};

/* libsonata's wheel knows no deflate: ids and times are plain unless asked for otherwise. */
static void make_column(const struct sink *k, const char *path, enum ftype type, int64_t n) {
  if (k->packed)
    h5_make_packed(k->file, path, type, n, 1);
  else
    h5_make_rows(k->file, path, type, n, 1);
}

static void put_column(const struct sink *k, const char *path, enum ftype type, const void *data) {
  if (k->packed)
    h5_put_packed(k->file, path, k->done, k->n, data);
  else
    h5_put(k->file, path, type, k->done, k->n, data);
}

static void sink_open(struct sink *k, struct h5_file *file, const struct spikes_facts *facts,
                      int64_t total, bool packed) {
  *k = (struct sink){
      .file = file, .packed = packed, .dt_ms = facts->dt_ms, .piece = h5_piece_rows(1)};
  spikes_dataset(facts, "node_ids", k->node_ids);
  spikes_dataset(facts, "step", k->steps);
  spikes_dataset(facts, "timestamps", k->times);
  make_column(k, k->node_ids, F_U64, total);
  make_column(k, k->times, F_F64, total);
  h5_make_packed(file, k->steps, F_U64, total, 1);
  k->step = NEW(int64_t, k->piece), k->node = NEW(nodeid, k->piece),
  k->time = NEW(double, k->piece);
  sha256_init(&k->hash);
}

static void sink_flush(struct sink *k) {
  if (k->n == 0) return;
  for (int64_t i = 0; i < k->n; i++) k->time[i] = (double)k->step[i] * k->dt_ms;
  put_column(k, k->node_ids, F_U64, k->node);
  put_column(k, k->times, F_F64, k->time);
  h5_put_packed(k->file, k->steps, k->done, k->n, k->step);
  spikes_hash(&k->hash, k->n, k->step, k->node);
  k->done += k->n, k->n = 0;
  pulse("merging spikes");
}

static void sink_take(struct sink *k, int64_t step, nodeid node) {
  k->step[k->n] = step, k->node[k->n++] = node;
  if (k->n == k->piece) sink_flush(k);
}

static void sink_close(struct sink *k, char digest[DIGEST_TEXT]) {
  sink_flush(k);
  sha256_end(&k->hash, digest);
  mem_free(k->step), mem_free(k->node), mem_free(k->time);
}

static void merge_chains(struct chain *chain, int n_chains, struct sink *sink) {
  struct chain **heap = NEW(struct chain *, n_chains);
  int n = 0;
  for (int i = 0; i < n_chains; i++)
    if (chain_fill(&chain[i])) heap[n++] = &chain[i];
  for (int i = n / 2 - 1; i >= 0; i--) sift(heap, n, i);
  while (n > 0) {
    struct chain *c = heap[0];
    sink_take(sink, c->step[c->at], c->node[c->at]);
    c->at++;
    if (!chain_fill(c)) heap[0] = heap[--n];
    sift(heap, n, 0);
  }
  mem_free(heap);
}

static void merge_spikes(struct spikes_file **segment, int n, struct h5_file *out,
                         struct spikes_facts *facts, bool packed, int64_t *total) {
  int n_chains;
  struct chain *chain = make_chains(segment, n, &n_chains);
  struct sink sink;
  *total = 0;
  for (int i = 0; i < n; i++) *total += segment[i]->n;
  sink_open(&sink, out, facts, *total, packed);
  merge_chains(chain, n_chains, &sink);
  sink_close(&sink, facts->spikes_digest);
  for (int i = 0; i < n_chains; i++) mem_free(chain[i].step), mem_free(chain[i].node);
  mem_free(chain);
}

/* ---- step counts: pieces, filled from every segment that has some ---- */

/* Returns the sum of all counts. */
static int64_t merge_counts(struct spikes_file **segment, int n, struct h5_file *out,
                            const struct spikes_facts *facts) {
  const int64_t piece = h5_piece_rows(1), steps = facts->last_step - facts->first_step + 1;
  int64_t *sum = NEW(int64_t, piece), *part = NEW(int64_t, piece);
  uint64_t total = 0;
  h5_make_packed(out, "/step_counts", F_U64, steps, 1);
  for (int64_t at = 0; at < steps; at += piece) {
    const int64_t m = least_i64(piece, steps - at), low = facts->first_step + at;
    memset(sum, 0, (size_t)m * sizeof *sum);
    for (int i = 0; i < n; i++) {
      const struct spikes_facts *f = &segment[i]->facts;
      const int64_t from = most_i64(low, f->first_step), to = least_i64(low + m, f->last_step + 1);
      if (from >= to) continue;
      spikes_counts(segment[i], from - f->first_step, to - from, part);
      for (int64_t t = from; t < to; t++)
        sum[t - low] = (int64_t)((uint64_t)sum[t - low] + (uint64_t)part[t - from]);
    }
    for (int64_t i = 0; i < m; i++) total += (uint64_t)sum[i];
    h5_put_packed(out, "/step_counts", at, m, sum);
  }
  mem_free(sum), mem_free(part);
  return (int64_t)total;
}

/* ---- the whole ---- */

struct status spikes_merge(struct spikes_file **segment, int n, const struct spikes_names *names,
                           const char *provenance, bool packed, const char *path,
                           struct spikes_totals *totals) {
  struct spikes_facts facts = segment[0]->facts;
  for (int i = 1; i < n; i++) {
    facts.first_step = least_i64(facts.first_step, segment[i]->facts.first_step);
    facts.last_step = most_i64(facts.last_step, segment[i]->facts.last_step);
  }
  facts.rank = 0, facts.ranks = 1, facts.segment = 0;
  char tmp[FILE_PATH];
  struct h5_file out;
  TRY(file_tmp_own(path, tmp));
  TRY(h5_create(tmp, &out));
  char *stored = provenance ? NULL : spikes_provenance(segment[0]);
  spikes_put_root(&out, provenance ? provenance : stored);
  mem_free(stored);
  merge_spikes(segment, n, &out, &facts, packed, &totals->recorded);
  spikes_put_facts(&out, &facts);
  totals->all = merge_counts(segment, n, &out, &facts);
  spikes_merge_potential(segment, n, &out);
  if (names) spikes_put_names(&out, names);
  h5_close(&out);
  return file_publish(tmp, path);
}
