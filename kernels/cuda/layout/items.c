/* How rows are split into items of about equal work, for the groups of lanes that walk them. */
#include "items.h"
#include "core/arrays.h"

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

/* Rows in the order of their keys. */
struct row_order {
  int64_t *start; /* [n_keys + 1] where the next row of each key goes */
  lidx *row;      /* [n_rows] */
};

static struct arrays list_order(struct row_order *o, int64_t n_keys, lidx n_rows) {
  struct arrays list = {0};
  ARRAY_ZERO(&list, o->start, n_keys + 1), ARRAY(&list, o->row, n_rows);
  return list;
}

static struct bin most_of(const eidx *ptr, lidx first, lidx n_rows,
                          struct recur_shape_on_device shape, int chunk) {
  struct bin most = {0, 0};
  for (lidx i = first; i < first + n_rows; i++) {
    const struct bin b = bin_of(ptr[i + 1] - ptr[i], shape, chunk);
    if (b.share > most.share) most.share = b.share;
    if (b.rounds > most.rounds) most.rounds = b.rounds;
  }
  return most;
}

/* A counting sort, so that equal keys keep the order of rows. */
static void sort_rows(const eidx *ptr, lidx first, lidx n_rows, struct recur_shape_on_device shape,
                      int chunk, struct bin most, int64_t n_keys, struct row_order *o) {
  for (lidx i = first; i < first + n_rows; i++)
    o->start[key_of(bin_of(ptr[i + 1] - ptr[i], shape, chunk), most.share, most.rounds) + 1]++;
  for (int64_t key = 0; key < n_keys; key++) o->start[key + 1] += o->start[key];
  for (lidx i = first; i < first + n_rows; i++)
    o->row[o->start[key_of(bin_of(ptr[i + 1] - ptr[i], shape, chunk), most.share, most.rounds)]++] =
        i;
}

int recur_items_blocks(const eidx *ptr, lidx first, lidx n_rows, struct recur_shape_on_device shape,
                       int chunk) {
  const int groups = RECUR_THREADS / shape.lanes;
  int64_t n = 0;
  for (lidx i = first; i < first + n_rows; i++)
    n += 1 << bin_of(ptr[i + 1] - ptr[i], shape, chunk).share;
  return (int)((n + groups - 1) / groups);
}

bool recur_items_fill(const eidx *ptr, const uint32_t *padded, lidx first, lidx n_rows,
                      struct recur_shape_on_device shape, int chunk, int n_blocks,
                      struct recur_item *item) {
  const int64_t n = (int64_t)n_blocks * (RECUR_THREADS / shape.lanes);
  const struct bin most = most_of(ptr, first, n_rows, shape, chunk);
  const int64_t n_keys = key_of((struct bin){0, 0}, most.share, most.rounds) + 1;
  struct row_order order;
  const struct arrays list = list_order(&order, n_keys, n_rows);
  if (!arrays_try_open(&list)) return false;
  sort_rows(ptr, first, n_rows, shape, chunk, most, n_keys, &order);
  int64_t at = 0;
  for (lidx i = 0; i < n_rows; i++) {
    const lidx row = order.row[i];
    const eidx edges = ptr[row + 1] - ptr[row];
    const int share = bin_of(edges, shape, chunk).share;
    for (int g = 0; g < 1 << share; g++)
      item[at++] = (struct recur_item){row, padded[row], (uint32_t)edges, (uint16_t)share, 0};
  }
  while (at < n) item[at++] = (struct recur_item){-1, 0, 0, 0, 0};
  arrays_close(&list);
  return true;
}
