/* How rows are split into items of about equal work, for the groups of lanes that walk them. */
#include "plan.h"
#include "core/mem.h"

enum { MOST_CHUNK = 256, BUSY_THREADS = 1024, LANE_CHUNK = 16 };

int recur_chunk(eidx n_edges, int processors, struct recur_shape_on_device shape,
                enum recur_direction direction) {
  const int least = direction == RECUR_FORWARD ? 48 : 64;
  const eidx groups = (eidx)processors * BUSY_THREADS / shape.lanes;
  int chunk = least < LANE_CHUNK * shape.lanes ? least : LANE_CHUNK * shape.lanes;
  while (chunk < MOST_CHUNK && 4 * chunk * groups <= n_edges)
    chunk = chunk * 2 < MOST_CHUNK ? chunk * 2 : MOST_CHUNK;
  if (n_edges <= RECUR_SMALL || shape.round != RECUR_PAD) return chunk;
  return chunk * (shape.lines && direction == RECUR_FORWARD ? 4 : 2);
}

struct bin {
  int share;      /* log2 of the groups of a row */
  int64_t rounds; /* of each group */
};

static struct bin bin_of(eidx edges, struct recur_shape_on_device shape, int chunk) {
  struct bin b = {0, 0};
  while ((edges >> b.share) > chunk && (shape.lanes << b.share) < RECUR_THREADS) b.share++;
  const int64_t stride = (int64_t)shape.round << b.share;
  b.rounds = (edges + stride - 1) / stride;
  return b;
}

/* Keys ascend from the widest split and the longest rows down. */
static int64_t key_of(struct bin b, int most_share, int64_t most_rounds) {
  return (most_share - b.share) * (most_rounds + 1) + most_rounds - b.rounds;
}

/* Rows in the order of their keys: a counting sort, so that equal keys keep the order of rows. */
static lidx *sorted_rows(const eidx *ptr, lidx first, lidx n_rows,
                         struct recur_shape_on_device shape, int chunk) {
  struct bin most = {0, 0};
  for (lidx i = first; i < first + n_rows; i++) {
    const struct bin b = bin_of(ptr[i + 1] - ptr[i], shape, chunk);
    if (b.share > most.share) most.share = b.share;
    if (b.rounds > most.rounds) most.rounds = b.rounds;
  }
  const int64_t n_keys = key_of((struct bin){0, 0}, most.share, most.rounds) + 1;
  int64_t *start = NEW_ZERO(int64_t, n_keys + 1);
  for (lidx i = first; i < first + n_rows; i++)
    start[key_of(bin_of(ptr[i + 1] - ptr[i], shape, chunk), most.share, most.rounds) + 1]++;
  for (int64_t key = 0; key < n_keys; key++) start[key + 1] += start[key];
  lidx *row = NEW(lidx, n_rows);
  for (lidx i = first; i < first + n_rows; i++)
    row[start[key_of(bin_of(ptr[i + 1] - ptr[i], shape, chunk), most.share, most.rounds)]++] = i;
  mem_free(start);
  return row;
}

struct recur_item *recur_plan(const eidx *ptr, const uint32_t *padded, lidx first, lidx n_rows,
                              struct recur_shape_on_device shape, int chunk, int *n_blocks) {
  const int groups = RECUR_THREADS / shape.lanes;
  lidx *row = sorted_rows(ptr, first, n_rows, shape, chunk);
  int64_t n = 0;
  for (lidx i = first; i < first + n_rows; i++)
    n += 1 << bin_of(ptr[i + 1] - ptr[i], shape, chunk).share;
  *n_blocks = (int)((n + groups - 1) / groups);
  struct recur_item *item = NEW(struct recur_item, (int64_t)*n_blocks * groups);
  int64_t at = 0;
  for (lidx i = 0; i < n_rows; i++) {
    const eidx edges = ptr[row[i] + 1] - ptr[row[i]];
    const int share = bin_of(edges, shape, chunk).share;
    for (int g = 0; g < 1 << share; g++)
      item[at++] = (struct recur_item){row[i], padded[row[i]], (uint32_t)edges, (uint16_t)share, 0};
  }
  while (at < (int64_t)*n_blocks * groups) item[at++] = (struct recur_item){-1, 0, 0, 0, 0};
  mem_free(row);
  return item;
}
