#include "lif_rows.h"
#include "ahead.h"
#include "log.h"
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { UNKNOWN = UINT32_MAX };
enum { ROW_COST = 128 };             /* what reading a row costs beside its edges, in edges */
enum { PIECE_COST = 64 * ROW_COST }; /* of rows that are read by one thread in one go */
enum { FAR_AHEAD = 16 };             /* rows whose places are fetched early */
static const double SLOW_ROW = 5e-6; /* seconds: then it did not come from the page cache */

/* Where the edges of a source are. */
struct kept {
  eidx at;       /* their place in the order of arrival; -1: never read */
  uint32_t n;    /* how many of them are ours; UNKNOWN before they were read once */
  uint32_t skip; /* edges of the source in the file before ours */
};

struct missing {
  uint32_t row, spike; /* for which spike of those at hand */
  bool late;           /* not in the page cache */
};

/* Spikes [end of the piece before, end) of those at hand, of whose rows these are missing. */
struct piece {
  int64_t end, missing_end;
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
  struct piece *piece;     /* [room / (PIECE_COST / ROW_COST) and a few: see make_room] */
  int64_t n_missing, n_pieces, from;
  atomic_bool cold; /* the page cache may not have what is asked for */
  atomic_bool failed;
  struct ahead *ahead;
};

static eidx in_file(const struct lif_net *net, uint32_t row) {
  return net->out_ptr[row + 1] - net->out_ptr[row];
}

static void read_piece(void *rows, int64_t i);

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
  for (gidx i = 0; i < net->n_global; i++)
    r->kept[i] = (struct kept){-1, r->whole ? (uint32_t)in_file(net, (uint32_t)i) : UNKNOWN, 0};
  atomic_init(&r->cold, true);
  r->ahead = ahead_open(net->stream->n_readers, read_piece, r);
  return r;
}

void lif_rows_close(struct lif_rows *r) {
  if (!r) return;
  ahead_close(r->ahead);
  mem_free(r->ring), mem_free(r->kept), mem_free(r->row), mem_free(r->missing), mem_free(r->piece),
      mem_free(r);
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

/* Every piece but the last costs at least PIECE_COST. */
static void make_room(struct lif_rows *r, int64_t n) {
  if (n <= r->room) return;
  mem_free(r->row), mem_free(r->missing), mem_free(r->piece);
  r->room = n + n / 2;
  r->row = NEW(struct lif_row, r->room), r->missing = NEW(struct missing, r->room);
  r->piece = NEW(struct piece, r->room / (PIECE_COST / ROW_COST) + r->capacity / PIECE_COST + 2);
}

/* A row that was read before, or will have been when its turn comes. */
static void set_row(struct lif_rows *r, int64_t spike, const struct kept *k) {
  r->row[spike] = (struct lif_row){r->ring + k->at % r->capacity, k->n};
}

static void end_piece(struct lif_rows *r, int64_t end) {
  r->piece[r->n_pieces++] = (struct piece){end, r->n_missing};
}

/* Places for as many spikes' rows as fit together; returns how many. What one of them uses is not overwritten
 * for another, and a row that was placed still stands when it comes again. A row of yet unknown length that
 * comes again ends them too: its length is known the next time. */
static int64_t place(struct lif_rows *r, int64_t n, const uint32_t *row) {
  const eidx most = r->head + r->capacity - (r->roomy ? 0 : r->capacity / 4);
  eidx limit = INT64_MAX, cost = 0;
  int64_t i = 0;
  r->n_missing = r->n_pieces = 0;
  for (; i < n; i++) {
    if (i + FAR_AHEAD < n) __builtin_prefetch(&r->kept[row[i + FAR_AHEAD]], 1);
    struct kept *k = &r->kept[row[i]];
    const eidx most_of_it = k->n == UNKNOWN ? in_file(r->net, row[i]) : k->n;
    if (!stands(r, k)) {
      if (!take(r, most_of_it, limit, &k->at)) break;
      r->missing[r->n_missing++] = (struct missing){row[i], (uint32_t)i, false};
      if (most < limit) limit = most;
      cost += ROW_COST + most_of_it;
    } else if (k->n == UNKNOWN)
      break;
    else
      set_row(r, i, k);
    if (k->at + r->capacity < limit) limit = k->at + r->capacity;
    if (cost >= PIECE_COST) end_piece(r, i + 1), cost = 0;
  }
  if (!r->n_pieces || r->piece[r->n_pieces - 1].end < i) end_piece(r, i);
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
      "%s: damaged: /out, edges %lld to %lld: target rows or delays do not stand where they should; make the "
      "file again",
      r->net->stream->path, (long long)r->net->out_ptr[row], (long long)r->net->out_ptr[row + 1] - 1);
}

/* Targets do not descend and are below n_own, delays are 1 to most: true otherwise. Signs are gathered, so
 * that no edge waits for another. */
static bool is_wrong(const struct lif_edge *edge, eidx n, int64_t n_own, int most) {
  int64_t signs = 0;
  for (eidx e = 0; e + 1 < n; e++) signs |= (int64_t)edge[e + 1].target - (int64_t)edge[e].target;
  int32_t delays = 0;
  for (eidx e = 0; e < n; e++) delays |= (edge[e].delay - 1) | (most - edge[e].delay);
  return n && (signs < 0 || delays < 0 || edge[n - 1].target >= n_own);
}

/* Edges as the file has them become ours: targets are own rows; nothing is there that a resident net would
 * not have. */
static void take_in(struct lif_rows *r, uint32_t row, struct lif_edge *edge) {
  const struct lif_net *net = r->net;
  struct kept *k = &r->kept[row];
  if (k->n == UNKNOWN) {
    const eidx n = in_file(net, row), skip = lif_first_from(edge, n, net->first);
    k->n = (uint32_t)(lif_first_from(edge, n, net->first + net->n_own) - skip);
    k->skip = (uint32_t)skip;
    if (skip) memmove(edge, edge + skip, k->n * sizeof *edge);
  }
  const uint32_t first = (uint32_t)net->first;
  for (uint32_t e = 0; e < k->n && first; e++) edge[e].target -= first;
  if (is_wrong(edge, k->n, net->n_own, net->max_delay)) damaged(r, row);
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

static void arrived(struct lif_rows *r, const struct missing *m) {
  take_in(r, m->row, r->ring + r->kept[m->row].at % r->capacity);
  set_row(r, m->spike, &r->kept[m->row]);
}

/* From the page cache at once; what is not there is asked for, and comes while others are read. */
static bool is_late(const struct lif_rows *r, const struct missing *m) {
  const struct run run = run_of(r, m->row);
  const struct iovec to = {run.to, (size_t)run.bytes};
  if (!run.bytes || preadv2(r->net->stream->file, &to, 1, run.offset, RWF_NOWAIT) == run.bytes) return false;
  posix_fadvise(r->net->stream->file, run.offset, run.bytes, POSIX_FADV_WILLNEED);
  return true;
}

/* Wherever it is. */
static void read_row(struct lif_rows *r, const struct missing *m) {
  const struct run run = run_of(r, m->row);
  for (int64_t done = 0; done < run.bytes;) {
    const ssize_t n =
        pread(r->net->stream->file, (char *)run.to + done, (size_t)(run.bytes - done), run.offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = errno;
      only_once(r);
      DIE(EXIT_INPUT, "%s: a part of the file cannot be read any more: %s", r->net->stream->path,
          n ? strerror(error) : "it was cut short");
    }
    done += n;
  }
  arrived(r, m);
}

/* Returns whether some were late. */
static bool read_cold(struct lif_rows *r, int64_t n, struct missing *m) {
  bool late = false;
  for (int64_t i = 0; i < n; i++) {
    m[i].late = is_late(r, &m[i]), late |= m[i].late;
    if (!m[i].late) arrived(r, &m[i]);
  }
  for (int64_t i = 0; i < n; i++)
    if (m[i].late) read_row(r, &m[i]);
  return late;
}

/* Returns whether that took too long for the page cache. Asking it first costs a quarter of a read. */
static bool read_warm(struct lif_rows *r, int64_t n, const struct missing *m) {
  const double before = seconds_now();
  for (int64_t i = 0; i < n; i++) read_row(r, &m[i]);
  return seconds_now() - before > SLOW_ROW * (double)n;
}

static void read_piece(void *rows, int64_t i) {
  struct lif_rows *r = rows;
  const int64_t from = i ? r->piece[i - 1].missing_end : 0, n = r->piece[i].missing_end - from;
  const bool was = atomic_load_explicit(&r->cold, memory_order_relaxed);
  const bool cold = was ? read_cold(r, n, r->missing + from) : read_warm(r, n, r->missing + from);
  if (n && cold != was) atomic_store_explicit(&r->cold, cold, memory_order_relaxed);
}

int64_t lif_rows_begin(struct lif_rows *r, const struct lif_spikes *all, int64_t from) {
  make_room(r, all->n - from);
  r->from = from;
  const int64_t end = from + place(r, all->n - from, all->row + from);
  ahead_begin(r->ahead, r->n_pieces);
  return end;
}

bool lif_rows_next(struct lif_rows *r, struct lif_held *held) {
  int64_t i = held->piece;
  if (i == r->n_pieces) return false;
  ahead_reach(r->ahead, i);
  const int64_t first = i ? r->piece[i - 1].end : 0;
  do i++;
  while (i < r->n_pieces && ahead_is_done(r->ahead, i));
  *held = (struct lif_held){i, r->from + first, r->from + r->piece[i - 1].end, r->row + first};
  return true;
}
