/* Reads the edges of spiking sources from the file and keeps them in a ring in memory. */
#include "rows.h"
#include "ahead.h"
#include "core/clones.h"
#include "core/log.h"
#include "core/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { UNKNOWN = UINT32_MAX };
enum { ROW_COST = 128 };             /* what reading a row costs beside its edges, in edges */
enum { CHUNK_COST = 64 * ROW_COST }; /* of rows that are read by one thread in one go */
enum { MOST_AT_HAND = 1 << 15 };     /* spikes: 48 bytes each, beside the edges */
enum { FAR_AHEAD = 16 };             /* rows whose positions are fetched early */
static const double SLOW_ROW = 5e-6; /* seconds: then it did not come from the page cache */

/* Where the edges of a source are. */
struct kept_row {
  eidx at;       /* their position in the order of arrival; -1: never read */
  uint32_t n;    /* how many of them are ours; UNKNOWN before they were read once */
  uint32_t skip; /* edges of the source in the file before ours */
};

/* A row to be read: edges [first, first + n) of the file. */
struct missing_row {
  struct lif_edge *to;
  eidx first;
  uint32_t n, row, spike; /* for which spike of those at hand */
  bool late;              /* not in the page cache */
};

/* Spikes [end of the chunk before, end) of those at hand, of whose rows these are missing. */
struct row_chunk {
  int64_t end, missing_end;
};

struct lif_rows {
  const struct lif_net *net;
  bool whole; /* all targets are ours */
  bool roomy; /* nothing of use is ever overwritten */
  eidx capacity;
  struct lif_edge *ring; /* [capacity] edge number `at` of the order of arrival at at % capacity */
  eidx head;             /* edges that arrived, and room skipped because a row is contiguous */
  struct kept_row *kept; /* [n_global] by source row */
  int64_t room;
  struct lif_row *row;         /* [room] of the spikes at hand */
  struct missing_row *missing; /* [room] */
  struct row_chunk *chunk;     /* [room / (CHUNK_COST / ROW_COST) and a few: see make_room] */
  int64_t n_missing, n_chunks, from;
  atomic_bool cold; /* the page cache may not have what is asked for */
  atomic_bool failed;
  struct ahead *ahead;
};

static eidx in_file(const struct lif_net *net, uint32_t row) {
  return net->out_ptr[row + 1] - net->out_ptr[row];
}

static void read_chunk(void *rows, int64_t i);

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
  r->kept = NEW(struct kept_row, net->n_global);
  for (gidx i = 0; i < net->n_global; i++)
    r->kept[i] = (struct kept_row){-1, r->whole ? (uint32_t)in_file(net, (uint32_t)i) : UNKNOWN, 0};
  atomic_init(&r->cold, true);
  r->ahead = ahead_open(net->stream->n_readers, read_chunk, r);
  return r;
}

void lif_rows_close(struct lif_rows *r) {
  if (!r) return;
  ahead_close(r->ahead);
  mem_free(r->ring), mem_free(r->kept), mem_free(r->row), mem_free(r->missing), mem_free(r->chunk),
      mem_free(r);
}

/* ---- which rows, and where ---- */

/* Still in memory. Rows soon to be overwritten are better read again now than in the middle of the
 * spikes that need them. */
static bool stands(const struct lif_rows *r, const struct kept_row *k) {
  return k->at >= 0 && k->at + r->capacity - (r->roomy ? 0 : r->capacity / 4) >= r->head;
}

/* Contiguous room for n edges behind the head, unless that would pass `limit`. */
static bool take(struct lif_rows *r, eidx n, eidx limit, eidx *at) {
  const eidx end = r->capacity - r->head % r->capacity, here = r->head + (end < n ? end : 0);
  if (here + n > limit) return false;
  *at = here, r->head = here + n;
  return true;
}

/* Every chunk but the last costs at least CHUNK_COST. */
static void make_room(struct lif_rows *r, int64_t n) {
  if (n <= r->room) return;
  mem_free(r->row), mem_free(r->missing), mem_free(r->chunk);
  r->room = n + n / 2;
  r->row = NEW(struct lif_row, r->room), r->missing = NEW(struct missing_row, r->room);
  r->chunk =
      NEW(struct row_chunk, r->room / (CHUNK_COST / ROW_COST) + r->capacity / CHUNK_COST + 2);
}

static void end_chunk(struct lif_rows *r, int64_t end) {
  r->chunk[r->n_chunks++] = (struct row_chunk){end, r->n_missing};
}

/* Room for as many spikes' rows as fit together; returns how many. What one of them uses is not
 * overwritten for another, and a row with room still stands when it comes again. A row of yet
 * unknown length that comes again ends them too: its length is known the next time. */
static int64_t reserve(struct lif_rows *r, int64_t n, const uint32_t *row) {
  const eidx most = r->head + r->capacity - (r->roomy ? 0 : r->capacity / 4);
  eidx limit = INT64_MAX, cost = 0;
  int64_t i = 0;
  r->n_missing = r->n_chunks = 0;
  for (; i < n; i++) {
    if (i + FAR_AHEAD < n) {
      __builtin_prefetch(&r->kept[row[i + FAR_AHEAD]], 1);
      __builtin_prefetch(&r->net->out_ptr[row[i + FAR_AHEAD]]);
    }
    struct kept_row *k = &r->kept[row[i]];
    if (!stands(r, k)) {
      const eidx reads = k->n == UNKNOWN ? in_file(r->net, row[i]) : k->n;
      if (!take(r, reads, limit, &k->at)) break;
      r->missing[r->n_missing++] = (struct missing_row){r->ring + k->at % r->capacity,
                                                        r->net->out_ptr[row[i]] + k->skip,
                                                        (uint32_t)reads,
                                                        row[i],
                                                        (uint32_t)i,
                                                        false};
      if (most < limit) limit = most;
      cost += ROW_COST + reads;
    } else if (k->n == UNKNOWN)
      break;
    else
      r->row[i] = (struct lif_row){r->ring + k->at % r->capacity, k->n};
    if (k->at + r->capacity < limit) limit = k->at + r->capacity;
    if (cost >= CHUNK_COST) end_chunk(r, i + 1), cost = 0;
  }
  if (!r->n_chunks || r->chunk[r->n_chunks - 1].end < i) end_chunk(r, i);
  return i;
}

/* ---- reading ---- */

/* By the first thread that comes to it; others wait for the end. */
static void only_once(struct lif_rows *r) {
  if (!atomic_exchange(&r->failed, true)) return;
  for (;;) pause();
}

static _Noreturn void damaged(struct lif_rows *r, uint32_t row) {
  only_once(r);
  DIE(EXIT_INPUT,
      "%s: damaged: /out, edges %lld to %lld: target rows or delays do not stand where they "
      "should; make the "
      "file again",
      r->net->stream->path, (long long)r->net->out_ptr[row],
      (long long)r->net->out_ptr[row + 1] - 1);
}

/* Targets do not descend and are below n_own, delays are 1 to most: true otherwise. Signs are
 * gathered, so that no edge waits for another. */
static VECTOR_CLONES bool is_wrong(const struct lif_edge *edge, eidx n, int64_t n_own, int most) {
  int64_t signs = 0;
  for (eidx e = 0; e + 1 < n; e++) signs |= (int64_t)edge[e + 1].target - (int64_t)edge[e].target;
  int32_t delays = 0;
  for (eidx e = 0; e < n; e++) delays |= (edge[e].delay - 1) | (most - edge[e].delay);
  return n && (signs < 0 || delays < 0 || edge[n - 1].target >= n_own);
}

/* Which edges of a source are ours, when they are all there for the first time. */
static void keep_ours(const struct lif_net *net, const struct missing_row *m, struct kept_row *k) {
  const eidx skip = lif_first_from(m->to, m->n, net->first);
  k->n = (uint32_t)(lif_first_from(m->to, m->n, net->first + net->n_own) - skip);
  k->skip = (uint32_t)skip;
  if (skip) memmove(m->to, m->to + skip, k->n * sizeof *m->to);
}

/* Edges as the file has them become ours: targets are own rows; nothing is there that a
 * resident net would not have. */
static void take_in(struct lif_rows *r, const struct missing_row *m) {
  const struct lif_net *net = r->net;
  eidx n = m->n;
  if (!r->whole) {
    struct kept_row *k = &r->kept[m->row];
    if (k->n == UNKNOWN) keep_ours(net, m, k);
    n = k->n;
    for (eidx e = 0; e < n; e++) m->to[e].target -= (uint32_t)net->first;
  }
  for (eidx e = 0; e < n && net->fixed_delay; e++) m->to[e].delay = (uint16_t)net->fixed_delay;
  if (is_wrong(m->to, n, net->n_own, net->max_delay)) damaged(r, m->row);
  r->row[m->spike] = (struct lif_row){m->to, n};
}

static int64_t offset_of(const struct lif_rows *r, const struct missing_row *m) {
  return r->net->stream->offset + m->first * (int64_t)sizeof *m->to;
}

/* From the page cache at once; what is not there is asked for, and comes while others are read. */
static bool is_late(const struct lif_rows *r, const struct missing_row *m) {
  const int64_t bytes = m->n * (int64_t)sizeof *m->to, offset = offset_of(r, m);
  const struct iovec to = {m->to, (size_t)bytes};
  if (!bytes || preadv2(r->net->stream->file, &to, 1, offset, RWF_NOWAIT) == bytes) return false;
  posix_fadvise(r->net->stream->file, offset, bytes, POSIX_FADV_WILLNEED);
  return true;
}

/* How many of n rows stand behind each other, in the file as in memory. */
static int64_t run_of(int64_t n, const struct missing_row *m) {
  int64_t i = 1;
  while (i < n && m[i].first == m[i - 1].first + m[i - 1].n && m[i].to == m[i - 1].to + m[i - 1].n)
    i++;
  return i;
}

/* Wherever they are. */
static void read_run(struct lif_rows *r, int64_t n_rows, const struct missing_row *m) {
  const struct missing_row *last = &m[n_rows - 1];
  const int64_t bytes = (last->to + last->n - m->to) * (int64_t)sizeof *m->to,
                offset = offset_of(r, m);
  for (int64_t done = 0; done < bytes;) {
    const ssize_t n =
        pread(r->net->stream->file, (char *)m->to + done, (size_t)(bytes - done), offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = errno;
      only_once(r);
      DIE(EXIT_INPUT, "%s: a part of the file cannot be read any more: %s", r->net->stream->path,
          n ? strerror(error) : "it was cut short");
    }
    done += n;
  }
  for (int64_t i = 0; i < n_rows; i++) take_in(r, &m[i]);
}

/* Returns whether some were late. */
static bool read_cold(struct lif_rows *r, int64_t n, struct missing_row *m) {
  bool late = false;
  for (int64_t i = 0; i < n; i++) {
    m[i].late = is_late(r, &m[i]), late |= m[i].late;
    if (!m[i].late) take_in(r, &m[i]);
  }
  for (int64_t i = 0; i < n; i++)
    if (m[i].late) read_run(r, 1, &m[i]);
  return late;
}

/* Returns whether that took too long for the page cache. Asking it first
 * costs a quarter of a read. */
static bool read_warm(struct lif_rows *r, int64_t n, const struct missing_row *m) {
  const double before = seconds_now();
  for (int64_t i = 0, to; i < n; i = to) {
    to = i + run_of(n - i, m + i);
    read_run(r, to - i, m + i);
  }
  return seconds_now() - before > SLOW_ROW * (double)n;
}

static void read_chunk(void *rows, int64_t i) {
  struct lif_rows *r = rows;
  const int64_t from = i ? r->chunk[i - 1].missing_end : 0, n = r->chunk[i].missing_end - from;
  const bool was = atomic_load_explicit(&r->cold, memory_order_relaxed);
  const bool cold = was ? read_cold(r, n, r->missing + from) : read_warm(r, n, r->missing + from);
  if (n && cold != was) atomic_store_explicit(&r->cold, cold, memory_order_relaxed);
}

int64_t lif_rows_begin(struct lif_rows *r, const struct lif_spikes *all, int64_t from) {
  const int64_t n = all->n - from < MOST_AT_HAND ? all->n - from : MOST_AT_HAND;
  make_room(r, n);
  r->from = from;
  const int64_t end = from + reserve(r, n, all->row + from);
  ahead_begin(r->ahead, r->n_chunks);
  return end;
}

bool lif_rows_next(struct lif_rows *r, struct lif_held *held) {
  int64_t i = held->chunk;
  if (i == r->n_chunks) return false;
  ahead_reach(r->ahead, i);
  const int64_t first = i ? r->chunk[i - 1].end : 0;
  do i++;
  while (i < r->n_chunks && ahead_is_done(r->ahead, i));
  *held = (struct lif_held){i, r->from + first, r->from + r->chunk[i - 1].end, r->row + first};
  return true;
}
