/* Which block owns which rows and edges in the persistent window, so that lanes share the work. */
#include "persist_plan.h"
#include "core/mem.h"

#include <stdlib.h>
#include <string.h>

enum {
  CLASSES = PERSIST_CLASSES,
  LANES = PERSIST_LANES,
  WALKERS = PERSIST_WALKERS,
  SLOTS = PERSIST_SLOTS
};
enum { OF_CLASS = LANES / CLASSES, ROUND = PERSIST_ROUND };
enum { ENDS_BYTES = 4 * sizeof(uint32_t) };

/* What the end of a stretch costs each lane, and one more segment, in slots;
 * tried out on random graphs. */
static const double END_SLOTS = 1, CUT_SLOTS = 4;

/* ---- rows to blocks and places ---- */

struct sized {
  eidx edges;
  lidx row;
};

static int longer_first(const void *a, const void *b) {
  const struct sized *x = a, *y = b;
  if (x->edges != y->edges) return x->edges < y->edges ? 1 : -1;
  return (x->row > y->row) - (x->row < y->row);
}

static struct sized *longest_first(lidx n, const eidx *ptr) {
  struct sized *row = NEW(struct sized, n);
  for (lidx i = 0; i < n; i++) row[i] = (struct sized){ptr[i + 1] - ptr[i], i};
  qsort(row, (size_t)n, sizeof *row, longer_first);
  return row;
}

/* The block of each row: longest row first, each to the block that has fewest edges and room. */
static void assign_blocks(lidx n, const eidx *ptr, const struct persist_tables *p, int *block) {
  struct sized *row = longest_first(n, ptr);
  eidx *load = NEW_ZERO(eidx, p->blocks);
  int *held = NEW_ZERO(int, p->blocks);
  for (lidx i = 0; i < n; i++) {
    int best = -1;
    for (int b = 0; b < p->blocks; b++)
      if (held[b] < p->rows && (best < 0 || load[b] < load[best])) best = b;
    held[best]++, load[best] += row[i].edges, block[row[i].row] = best;
  }
  mem_free(row), mem_free(load), mem_free(held);
}

/* The class of a row's place decides which lanes read it. Busiest row first, each takes the
 * class that its readers read least so far, of those that its block has free: so the runs of a
 * reader become about equally long. */
static void choose_places(lidx n, const struct persist_edges *readers, const int *block,
                          struct persist_tables *p) {
  struct sized *row = longest_first(n, readers->ptr);
  int *met = NEW_ZERO(int, (int64_t)n *CLASSES), *free = NEW(int, p->blocks *CLASSES);
  for (int b = 0; b < p->blocks; b++)
    for (int at = b * p->rows; at < b * p->rows + CLASSES; at++)
      free[b * CLASSES + at % CLASSES] = at;
  for (int at = 0; at < p->blocks * p->rows; at++) p->row_at[at] = -1;
  for (lidx i = 0; i < n; i++) {
    const lidx r = row[i].row;
    int64_t cost[CLASSES] = {0};
    for (eidx e = readers->ptr[r]; e < readers->ptr[r + 1]; e++)
      for (int c = 0; c < CLASSES; c++) cost[c] += met[(int64_t)readers->col[e] * CLASSES + c];
    const int first = block[r] * p->rows, end = first + p->rows;
    int best = -1, *next = free + block[r] * CLASSES; /* the place that comes next of each class */
    for (int c = 0; c < CLASSES; c++)
      if (next[c] < end && (best < 0 || cost[c] < cost[best])) best = c;
    p->row_at[next[best]] = r, p->place[r] = next[best];
    next[best] += CLASSES;
    for (eidx e = readers->ptr[r]; e < readers->ptr[r + 1]; e++)
      met[(int64_t)readers->col[e] * CLASSES + best]++;
  }
  mem_free(row), mem_free(met), mem_free(free);
}

/* ---- one block ---- */

struct segment {
  int row, n; /* row counted in the block; edges */
  int first;  /* into the block's edges */
};

/* A block's edges by row and class, and their segments by class, longest first. */
struct block {
  int n_edges, *start; /* [rows * CLASSES + 1] */
  uint16_t *place;     /* of the other end */
  uint32_t *edge;
  struct segment *segment[CLASSES];
  int n_segments[CLASSES];
  int n_stretches, turns,
      *length;        /* before stretches are cut at the ends of warps; turns of all, of each */
  int (*at)[CLASSES]; /* [n_stretches + 1] the segments of each stretch */
};

static void by_class(const struct persist_tables *p, int b, const struct persist_edges *walk,
                     struct block *s) {
  const eidx *ptr = walk->ptr;
  const lidx *row_at = p->row_at + b * p->rows;
  for (int i = 0; i < p->rows; i++)
    for (eidx e = row_at[i] < 0 ? 0 : ptr[row_at[i]]; row_at[i] >= 0 && e < ptr[row_at[i] + 1]; e++)
      s->start[i * CLASSES + p->place[walk->col[e]] % CLASSES + 1]++;
  for (int r = 0; r < p->rows * CLASSES; r++) s->start[r + 1] += s->start[r];
  int *next = NEW(int, p->rows *CLASSES);
  memcpy(next, s->start, (size_t)p->rows * CLASSES * sizeof *next);
  for (int i = 0; i < p->rows; i++)
    for (eidx e = row_at[i] < 0 ? 0 : ptr[row_at[i]]; row_at[i] >= 0 && e < ptr[row_at[i] + 1];
         e++) {
      const lidx place = p->place[walk->col[e]];
      const int at = next[i * CLASSES + place % CLASSES]++;
      s->place[at] = (uint16_t)place, s->edge[at] = walk->edge ? walk->edge[e] : (uint32_t)e;
    }
  mem_free(next);
}

/* Longest first. */
static int segment_order(const void *a, const void *b) {
  const struct segment *x = a, *y = b;
  if (x->n != y->n) return x->n < y->n ? 1 : -1;
  return (x->first > y->first) - (x->first < y->first);
}

static void whole_runs(const struct persist_tables *p, struct block *s) {
  for (int c = 0; c < CLASSES; c++) {
    s->n_segments[c] = 0;
    for (int i = 0; i < p->rows; i++) {
      const int first = s->start[i * CLASSES + c], n = s->start[i * CLASSES + c + 1] - first;
      if (n > 0) s->segment[c][s->n_segments[c]++] = (struct segment){i, n, first};
    }
    qsort(s->segment[c], (size_t)s->n_segments[c], sizeof *s->segment[c], segment_order);
  }
}

/* Turns of a stretch of the longest segments left, from `at` on of each class: what is longer is
 * cut and comes back as another segment. The best length places most edges for its cost in slots.
 */
static int best_turns(const struct block *s, const int *at) {
  int best = 0;
  double most = 0;
  for (int turns = 1; turns <= SLOTS / 2; turns++) {
    int placed = 0, cut = 0;
    for (int c = 0; c < CLASSES; c++)
      for (int i = at[c]; i < at[c] + OF_CLASS && i < s->n_segments[c]; i++) {
        const int n = s->segment[c][i].n;
        placed += n < 2 * turns ? n : 2 * turns, cut += n > 2 * turns;
      }
    const double rate = placed / (double)(LANES * (2 * turns + END_SLOTS) + cut * CUT_SLOTS);
    if (rate > most) most = rate, best = turns;
  }
  return best;
}

/* What is left of a segment goes back among the segments of its class, which stay in order. */
static void put_back(struct block *s, int c, int from, struct segment rest) {
  int i = s->n_segments[c]++;
  for (; i > from && segment_order(&rest, &s->segment[c][i - 1]) < 0; i--)
    s->segment[c][i] = s->segment[c][i - 1];
  s->segment[c][i] = rest;
}

/* Stretches from the longest segments down. */
static void cut_segments(struct block *s) {
  s->turns = 0, s->n_stretches = 0;
  memset(s->at[0], 0, sizeof *s->at);
  for (int turns = best_turns(s, s->at[0]); turns > 0;
       turns = best_turns(s, s->at[s->n_stretches])) {
    const int *at = s->at[s->n_stretches];
    s->length[s->n_stretches++] = turns, s->turns += turns;
    for (int c = 0; c < CLASSES; c++) {
      const int first = at[c],
                end = first + OF_CLASS < s->n_segments[c] ? first + OF_CLASS : s->n_segments[c];
      s->at[s->n_stretches][c] = end;
      for (int i = first; i < end; i++) {
        struct segment *segment = &s->segment[c][i];
        if (segment->n <= 2 * turns) continue;
        const struct segment rest = {segment->row, segment->n - 2 * turns,
                                     segment->first + 2 * turns};
        segment->n = 2 * turns;
        put_back(s, c, end, rest);
      }
    }
  }
}

/* ---- segments to lanes ---- */

struct sum { /* stored at `at` by the lane that walked a segment of row */
  int row, class, seq, at;
};

struct assignment {
  struct persist_tables *plan;
  const struct block *source;
  int block, stretches;
  struct sum *sum; /* all that are stored */
  int n_sums;
};

/* The four words of a warp. */
static uint32_t *ends_of(const struct persist_tables *t, int block, int warp) {
  return (uint32_t *)t->ends + ((int64_t)block * WALKERS + warp) * 4;
}

/* Turns [from, to) of `stretch` become the turns `turn` .. of a warp. */
static void place_stretch(struct assignment *l, int stretch, int from, int to, int warp, int turn) {
  struct persist_tables *p = l->plan;
  const int64_t warp_of_all = (int64_t)l->block * WALKERS + warp;
  const int64_t row_of_slots = warp_of_all * SLOTS, row_of_words = warp_of_all * PERSIST_WORDS;
  for (int lane = 0; lane < LANES; lane++) {
    const int c = lane % CLASSES, which = l->source->at[stretch][c] + lane / CLASSES;
    if (which >= l->source->at[stretch + 1][c]) continue;
    const struct segment *segment = &l->source->segment[c][which];
    if (from * 2 >= segment->n) continue;
    for (int e = from * 2; e < to * 2 && e < segment->n; e++) {
      const int slot = (turn - from) * 2 + e, at = segment->first + e;
      p->packed[(row_of_words + slot / 3) * LANES + lane] |=
          (uint32_t)(l->source->place[at] / CLASSES) << slot % 3 * PERSIST_BITS;
      p->edge[(row_of_slots + slot) * LANES + lane] = l->source->edge[at];
    }
    l->sum[l->n_sums++] = (struct sum){segment->row, c, 0, l->stretches * LANES + lane};
    p->lane_row[((int64_t)l->block * p->stretches + l->stretches) * LANES + lane] =
        (uint8_t)segment->row;
  }
  uint32_t *ends = ends_of(p, l->block, warp);
  const int last = turn + to - from - 1;
  ends[last / 32] |= 1u << (last % 32);
  ends[3] = (uint32_t)last + 1;
  l->stretches++;
}

/* All stretches in a row are cut into WALKERS equal shares. */
static void place_all(struct assignment *l) {
  const int total = l->source->turns, n = l->source->n_stretches;
  int stretch = 0, from = 0;
  for (int w = 0, done = 0; w < WALKERS; w++) {
    const int until = (int)((int64_t)total * (w + 1) / WALKERS), begin = done;
    ends_of(l->plan, l->block, w)[2] = (uint32_t)l->stretches;
    while (done < until && stretch < n) {
      const int left = l->source->length[stretch] - from;
      const int take = left < until - done ? left : until - done;
      place_stretch(l, stretch, from, from + take, w, done - begin);
      done += take, from += take;
      if (take == left) stretch++, from = 0;
    }
  }
}

/* ---- the sums of each row ---- */

static int sum_order(const void *a, const void *b) {
  const struct sum *x = a, *y = b;
  if (x->row != y->row) return x->row < y->row ? -1 : 1;
  if (x->seq != y->seq) return x->seq < y->seq ? -1 : 1;
  return (x->at > y->at) - (x->at < y->at);
}

/* Rows one after another; within a row one sum of each class before the next of any, and
 * neighbouring rows begin with neighbouring classes, so that eight threads of neighbouring rows
 * read from different banks. */
static void sort_sums(struct assignment *l, int rows) {
  int *seen = NEW_ZERO(int, rows *CLASSES);
  for (int i = 0; i < l->n_sums; i++) {
    const int row = l->sum[i].row, c = l->sum[i].class;
    l->sum[i].seq = seen[row * CLASSES + c]++ * CLASSES + (c + CLASSES - row % CLASSES) % CLASSES;
  }
  qsort(l->sum, (size_t)l->n_sums, sizeof *l->sum, sum_order);
  mem_free(seen);
}

/* Rounds that each row needs, as running sums; their total. */
static int count_rounds(const struct assignment *l, int rows, uint16_t *first) {
  int *n = NEW_ZERO(int, rows);
  for (int i = 0; i < l->n_sums; i++) n[l->sum[i].row]++;
  for (int i = 0; i < rows; i++) first[i + 1] = (uint16_t)(first[i] + (n[i] + ROUND - 1) / ROUND);
  mem_free(n);
  return first[rows];
}

static void list_sums(const struct assignment *l) {
  const struct persist_tables *p = l->plan;
  const uint16_t *first = p->first + (int64_t)l->block * (p->rows + 1);
  uint16_t *sum_at = p->sum_at + (int64_t)l->block * p->rounds * ROUND;
  for (int i = 0; i < p->rounds * ROUND; i++) sum_at[i] = (uint16_t)(p->stretches * LANES);
  for (int i = 0, row = -1, at = 0; i < l->n_sums; i++) {
    if (l->sum[i].row != row) row = l->sum[i].row, at = first[row] * ROUND;
    sum_at[at++] = (uint16_t)l->sum[i].at;
  }
}

/* ---- all blocks ---- */

static void block_init(struct block *s, const struct persist_tables *p, int b, const eidx *ptr) {
  *s = (struct block){.start = NEW_ZERO(int, p->rows *CLASSES + 1)};
  for (int i = 0; i < p->rows; i++) {
    const lidx row = p->row_at[b * p->rows + i];
    if (row >= 0) s->n_edges += (int)(ptr[row + 1] - ptr[row]);
  }
  s->length = NEW(int, s->n_edges);
  s->at = mem_alloc((int64_t)s->n_edges + 1, sizeof *s->at);
  s->place = NEW(uint16_t, s->n_edges), s->edge = NEW(uint32_t, s->n_edges);
  for (int c = 0; c < CLASSES; c++) s->segment[c] = NEW(struct segment, s->n_edges);
}

static void block_free(struct block *s) {
  mem_free(s->start), mem_free(s->place), mem_free(s->edge), mem_free(s->length), mem_free(s->at);
  for (int c = 0; c < CLASSES; c++) mem_free(s->segment[c]);
}

/* The three steps in which their sizes become known. */
static void list_places(struct arrays *list, struct persist_tables *t, lidx n) {
  ARRAY(list, t->row_at, (int64_t)t->blocks * t->rows), ARRAY(list, t->place, n);
}

static void list_edges(struct arrays *list, struct persist_tables *t) {
  const int64_t warps = (int64_t)t->blocks * WALKERS;
  ARRAY_ZERO(list, t->packed, warps * PERSIST_WORDS * LANES);
  ARRAY(list, t->edge, warps * SLOTS * LANES);
  arrays_add(list, &t->ends, warps, ENDS_BYTES, true);
  ARRAY_ZERO(list, t->lane_row, (int64_t)t->blocks * t->stretches * LANES);
  ARRAY_ZERO(list, t->first, (int64_t)t->blocks * (t->rows + 1));
}

static void list_sums_of_rows(struct arrays *list, struct persist_tables *t) {
  ARRAY(list, t->sum_at, (int64_t)t->blocks * t->rounds * ROUND);
}

void persist_list_tables(struct arrays *list, struct persist_tables *t, lidx n) {
  list_places(list, t, n), list_edges(list, t), list_sums_of_rows(list, t);
}

static void open_edges(struct persist_tables *t) {
  struct arrays list = {0};
  list_edges(&list, t);
  arrays_open(&list);
  memset(t->edge, 0xff, (size_t)t->blocks * WALKERS * SLOTS * LANES * sizeof *t->edge);
}

/* The segments of all blocks to lanes; then, once it is known how many rounds there
 * are, the lists of sums. */
static void lay_out(struct persist_tables *p, const struct block *s) {
  struct assignment *l = NEW_ZERO(struct assignment, p->blocks);
  for (int b = 0; b < p->blocks; b++) {
    l[b] = (struct assignment){.plan = p, .source = &s[b], .block = b};
    l[b].sum = NEW(struct sum, (int64_t)p->stretches * LANES);
    place_all(&l[b]), sort_sums(&l[b], p->rows);
    const int rounds = count_rounds(&l[b], p->rows, p->first + (int64_t)b * (p->rows + 1));
    p->rounds = rounds > p->rounds ? rounds : p->rounds;
  }
  struct arrays list = {0};
  list_sums_of_rows(&list, p);
  arrays_open(&list);
  for (int b = 0; b < p->blocks; b++) list_sums(&l[b]), mem_free(l[b].sum);
  mem_free(l);
}

int persist_rows(lidx n, int blocks) {
  const int64_t rows = ((int64_t)n + blocks - 1) / blocks;
  return rows <= PERSIST_MOST_ROWS && blocks * rows <= CLASSES << PERSIST_BITS ? (int)rows : 0;
}

bool persist_plan(lidx n, const struct persist_edges *walk, const struct persist_edges *readers,
                  int blocks, struct persist_tables *p) {
  *p = (struct persist_tables){.blocks = blocks, .rows = persist_rows(n, blocks)};
  if (n == 0 || p->rows == 0) return false;
  struct arrays list = {0};
  list_places(&list, p, n);
  arrays_open(&list);
  int *block = NEW(int, n);
  assign_blocks(n, walk->ptr, p, block), choose_places(n, readers, block, p);
  mem_free(block);
  struct block *s = NEW(struct block, blocks);
  bool fits = true;
  for (int b = 0; b < blocks; b++) {
    block_init(&s[b], p, b, walk->ptr);
    by_class(p, b, walk, &s[b]);
    whole_runs(p, &s[b]), cut_segments(&s[b]);
    const int stretches = s[b].n_stretches + WALKERS - 1;
    p->stretches = stretches > p->stretches ? stretches : p->stretches;
    fits = fits && (s[b].turns + WALKERS - 1) / WALKERS <= SLOTS / 2;
  }
  if (fits) {
    open_edges(p);
    lay_out(p, s);
  }
  for (int b = 0; b < blocks; b++) block_free(&s[b]);
  mem_free(s);
  if (!fits) arrays_close(&list);
  return fits;
}
