#include "lif_rows.h"
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { UNKNOWN = UINT32_MAX };

/* Where the edges of a source are. */
struct kept {
  eidx at;       /* their place in the order of arrival; -1: never read */
  uint32_t n;    /* how many of them are ours; UNKNOWN before they were read once */
  uint32_t skip; /* edges of the source in the file before ours */
};

struct missing {
  uint32_t row;
  bool late; /* not in the page cache */
};

struct lif_rows {
  const struct lif_net *net;
  bool whole; /* all targets are ours */
  bool roomy; /* nothing of use is ever overwritten */
  eidx capacity;
  struct lif_edge *ring; /* [capacity] edge number `at` of the order of arrival at at % capacity */
  eidx head;             /* edges that arrived, and places left out because a row stands in one piece */
  struct kept *kept;     /* [n_global] by source row */
  int64_t room;
  struct lif_row *row;     /* [room] of the spikes at hand */
  struct missing *missing; /* [room] */
  int64_t n_missing;
};

static eidx in_file(const struct lif_net *net, uint32_t row) {
  return net->out_ptr[row + 1] - net->out_ptr[row];
}

struct lif_rows *lif_rows_open(const struct lif_net *net) {
  struct lif_rows *r = NEW_ZERO(struct lif_rows, 1);
  eidx longest = 1;
  for (gidx i = 0; i < net->n_global; i++)
    if (in_file(net, (uint32_t)i) > longest) longest = in_file(net, (uint32_t)i);
  if (longest >= UNKNOWN)
    DIE(EXIT_INPUT, "%s: %lld edges of one neuron", net->stream->path, (long long)longest);
  r->net = net, r->whole = net->n_own == net->n_global;
  r->capacity = net->stream->held_bytes / (int64_t)sizeof *r->ring;
  if (r->capacity < longest) r->capacity = longest;
  r->roomy = r->capacity >= net->n_edges + longest;
  posix_fadvise(net->stream->file, 0, 0, POSIX_FADV_RANDOM);
  r->ring = NEW(struct lif_edge, r->capacity);
  r->kept = NEW(struct kept, net->n_global);
  for (gidx i = 0; i < net->n_global; i++) r->kept[i] = (struct kept){-1, UNKNOWN, 0};
  return r;
}

void lif_rows_close(struct lif_rows *r) {
  if (!r) return;
  mem_free(r->ring), mem_free(r->kept), mem_free(r->row), mem_free(r->missing), mem_free(r);
}

/* ---- which rows, and where ---- */

/* Still in memory. Rows soon to be overwritten are better read again now than in the middle of the spikes
 * that need them. */
static bool stands(const struct lif_rows *r, const struct kept *k) {
  return k->at >= 0 && k->at + r->capacity - (r->roomy ? 0 : r->capacity / 4) >= r->head;
}

/* Room for n edges in one piece behind the head, unless that would pass `limit`. */
static bool take(struct lif_rows *r, eidx n, eidx limit, eidx *at) {
  const eidx end = r->capacity - r->head % r->capacity, here = r->head + (end < n ? end : 0);
  if (here + n > limit) return false;
  *at = here, r->head = here + n;
  return true;
}

static void make_room(struct lif_rows *r, int64_t n) {
  if (n <= r->room) return;
  mem_free(r->row), mem_free(r->missing);
  r->room = n + n / 2;
  r->row = NEW(struct lif_row, r->room), r->missing = NEW(struct missing, r->room);
}

/* Places for as many spikes' rows as fit together; returns the end of these spikes. What one of them uses is
 * not overwritten for another, and a row that was placed still stands when it comes again. */
static int64_t place(struct lif_rows *r, const struct lif_spikes *all, int64_t from) {
  const eidx most = r->head + r->capacity - (r->roomy ? 0 : r->capacity / 4);
  eidx limit = INT64_MAX;
  int64_t i = from;
  r->n_missing = 0;
  for (; i < all->n; i++) {
    struct kept *k = &r->kept[all->row[i]];
    if (!stands(r, k)) {
      if (!take(r, k->n == UNKNOWN ? in_file(r->net, all->row[i]) : k->n, limit, &k->at)) break;
      r->missing[r->n_missing++] = (struct missing){all->row[i], false};
      if (most < limit) limit = most;
    }
    if (k->at + r->capacity < limit) limit = k->at + r->capacity;
  }
  return i;
}

/* ---- reading ---- */

static _Noreturn void damaged(const struct lif_rows *r, uint32_t row) {
  DIE(EXIT_INPUT,
      "%s: damaged: /out, edges %lld to %lld: target rows or delays do not stand where they should; make the "
      "file again",
      r->net->stream->path, (long long)r->net->out_ptr[row], (long long)r->net->out_ptr[row + 1] - 1);
}

/* Edges as the file has them become ours: targets are own rows; nothing is there that a resident net would
 * not have. */
static void take_in(struct lif_rows *r, uint32_t row, struct lif_edge *edge) {
  const struct lif_net *net = r->net;
  struct kept *k = &r->kept[row];
  if (k->n == UNKNOWN) {
    const eidx n = in_file(net, row), skip = r->whole ? 0 : lif_first_from(edge, n, net->first);
    k->n = (uint32_t)((r->whole ? n : lif_first_from(edge, n, net->first + net->n_own)) - skip);
    k->skip = (uint32_t)skip;
    if (skip) memmove(edge, edge + skip, k->n * sizeof *edge);
  }
  const uint32_t first = (uint32_t)net->first, n_own = (uint32_t)net->n_own;
  const unsigned most = (unsigned)net->max_delay;
  uint32_t before = 0;
  bool wrong = false;
  for (uint32_t e = 0; e < k->n; e++) {
    const uint32_t target = edge[e].target - first;
    wrong |= target >= n_own || target < before || edge[e].delay - 1u >= most;
    edge[e].target = before = target;
  }
  if (wrong) damaged(r, row);
}

/* The place of a row in memory and in the file. */
struct run {
  struct lif_edge *to;
  int64_t offset, bytes;
};

static struct run run_of(const struct lif_rows *r, uint32_t row) {
  const struct kept *k = &r->kept[row];
  const eidx n = k->n == UNKNOWN ? in_file(r->net, row) : k->n;
  return (struct run){.to = r->ring + k->at % r->capacity,
                      .offset = r->net->stream->offset +
                                (r->net->out_ptr[row] + k->skip) * (int64_t)sizeof(struct lif_edge),
                      .bytes = n * (int64_t)sizeof(struct lif_edge)};
}

/* From the page cache at once; what is not there is asked for, and comes while others are read. */
static void read_now(struct lif_rows *r, struct missing *m) {
  const struct run run = run_of(r, m->row);
  const struct iovec to = {run.to, (size_t)run.bytes};
  m->late = run.bytes && preadv2(r->net->stream->file, &to, 1, run.offset, RWF_NOWAIT) != run.bytes;
  if (m->late)
    posix_fadvise(r->net->stream->file, run.offset, run.bytes, POSIX_FADV_WILLNEED);
  else
    take_in(r, m->row, run.to);
}

static void read_late(struct lif_rows *r, const struct missing *m) {
  const struct run run = run_of(r, m->row);
  for (int64_t done = 0; done < run.bytes;) {
    const ssize_t n =
        pread(r->net->stream->file, (char *)run.to + done, (size_t)(run.bytes - done), run.offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      DIE(EXIT_INPUT, "%s: a part of the file cannot be read any more: %s", r->net->stream->path,
          n ? strerror(errno) : "it was cut short");
    done += n;
  }
  take_in(r, m->row, run.to);
}

int64_t lif_rows_hold(struct lif_rows *r, const struct lif_spikes *all, int64_t from, int n_threads,
                      const struct lif_row **row) {
  make_room(r, all->n - from);
  const int64_t end = place(r, all, from);
#pragma omp parallel num_threads(n_threads) if (n_threads > 1)
  {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < r->n_missing; i++) read_now(r, &r->missing[i]);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < r->n_missing; i++)
      if (r->missing[i].late) read_late(r, &r->missing[i]);
#pragma omp for schedule(static)
    for (int64_t i = from; i < end; i++) {
      const struct kept *k = &r->kept[all->row[i]];
      r->row[i - from] = (struct lif_row){r->ring + k->at % r->capacity, k->n};
    }
  }
  *row = r->row;
  return end;
}
