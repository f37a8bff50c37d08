/* From kept rows to canonical edges: excluded sources, order, repeated pairs, scale. */
#include "convert.h"
#include "core/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void move_edge(struct edges *e, int64_t to, int64_t from) {
  e->source[to] = e->source[from], e->target[to] = e->target[from], e->weight[to] = e->weight[from];
  if (e->delay) e->delay[to] = e->delay[from];
}

void edges_drop_excluded(struct edges *e, struct nodes *nodes, const int8_t *sign,
                         struct account *account) {
  struct node_labels *column = nodes_column(nodes, "transmitter");
  struct input_account *input = account_input(account, "edges");
  int64_t *dropped = NEW_ZERO(int64_t, column->labels.n), n = 0;
  for (int64_t i = 0; i < e->n; i++) {
    if (sign[e->source[i]])
      move_edge(e, n++, i);
    else
      dropped[column->code[e->source[i]]]++;
  }
  e->n = n;
  input->kept = n;
  for (int64_t l = 0; l < column->labels.n; l++) {
    if (!dropped[l]) continue;
    char *label = ids_text(&column->labels, (uint32_t)l);
    const int reason = account_reason(input, "the sign table excludes its source (%s)",
                                      *label ? label : "missing");
    input->reason[reason].rows += dropped[l];
    mem_free(label);
  }
  mem_free(dropped);
}

/* ---- order ---- */

/* Where each edge goes in a stable counting sort by key [n] < n_keys. */
static void sort_by(struct edges *e, const uint32_t *key32, const uint16_t *key16, int64_t n_keys) {
  int64_t *start = NEW_ZERO(int64_t, n_keys + 1);
  for (int64_t i = 0; i < e->n; i++) start[(key32 ? key32[i] : key16[i]) + 1]++;
  for (int64_t k = 0; k < n_keys; k++) start[k + 1] += start[k];
  struct edges to = {.n = e->n,
                     .capacity = e->n,
                     .places = e->places,
                     .row_weight = e->row_weight,
                     .source = NEW(uint32_t, e->n),
                     .target = NEW(uint32_t, e->n),
                     .weight = NEW(int32_t, e->n),
                     .delay = e->delay ? NEW(uint16_t, e->n) : NULL};
  for (int64_t i = 0; i < e->n; i++) {
    const int64_t at = start[key32 ? key32[i] : key16[i]]++;
    to.source[at] = e->source[i], to.target[at] = e->target[i], to.weight[at] = e->weight[i];
    if (e->delay) to.delay[at] = e->delay[i];
  }
  mem_free(start);
  edges_free(e);
  *e = to;
}

void edges_canonical(struct edges *e, const uint32_t *node_of, int64_t n_nodes,
                     struct progress *progress) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < e->n; i++) {
    e->source[i] = node_of[e->source[i]];
    e->target[i] = node_of[e->target[i]];
  }
  if (e->n == 0) return;
  if (e->delay) sort_by(e, NULL, e->delay, UINT16_MAX + 1);
  progress_add(progress, e->n);
  sort_by(e, e->source, NULL, n_nodes);
  progress_add(progress, e->n);
  sort_by(e, e->target, NULL, n_nodes);
  progress_add(progress, e->n);
}

/* ---- repeated pairs ---- */

static bool same_pair(const struct edges *e, int64_t i, int64_t j) {
  return e->source[i] == e->source[j] && e->target[i] == e->target[j];
}

static struct status repeated(const char *path, const struct edges *e, int64_t i,
                              const uint32_t *index_of_node, const struct ids *ids,
                              const char *what) {
  char *pre = ids_text(ids, index_of_node[e->source[i]]),
       *post = ids_text(ids, index_of_node[e->target[i]]);
  const struct status s = failure(EXIT_INPUT, "%s: the pair %s -> %s %s", path, pre, post, what);
  mem_free(pre), mem_free(post);
  return s;
}

struct status edges_merge(const struct convert_options *o, struct edges *e, struct account *account,
                          const uint32_t *index_of_node, const struct ids *ids) {
  const bool keep = !strcmp(o->duplicates, "keep"), refuse = !strcmp(o->duplicates, "refuse");
  int64_t n = 0, last_pair = -1;
  for (int64_t i = 0; i < e->n; i++) {
    const bool pair = n && same_pair(e, n - 1, i),
               same = pair && (!e->delay || e->delay[n - 1] == e->delay[i]);
    if (same && refuse)
      return repeated(o->edges, e, i, index_of_node, ids,
                      "occurs more than once; --duplicates sum or keep takes it");
    if (same && !keep) {
      const int64_t sum = (int64_t)e->weight[n - 1] + e->weight[i];
      if (sum < -INT32_MAX || sum > INT32_MAX)
        return repeated(
            o->edges, e, i, index_of_node, ids,
            "has a summed weight that does not fit a signed 32-bit number; --duplicates keep "
            "does not add them");
      e->weight[n - 1] = (int32_t)sum;
      account->merged_rows++;
      account->merged_pairs += last_pair != n - 1;
      last_pair = n - 1;
      continue;
    }
    account->parallel_edges += pair;
    move_edge(e, n++, i);
  }
  e->n = n;
  return fine();
}

void edges_drop_weak(struct edges *e, int64_t least, struct account *account) {
  const int64_t unit = scale_unit(e->places);
  int64_t n = 0;
  for (int64_t i = 0; i < e->n; i++) {
    const int64_t size = e->weight[i] < 0 ? -(int64_t)e->weight[i] : e->weight[i];
    if (size < least * unit)
      account->weak++, account->weak_weight += size;
    else
      move_edge(e, n++, i);
  }
  e->n = n;
}

/* ---- scale ---- */

static bool read_part(const char *text, char **end, int64_t *x) {
  errno = 0;
  *x = strtoll(text, end, 10);
  return *end != text && !errno && *x >= 1 && *x <= INT64_C(1) << 31;
}

struct status scale_parse(const char *text, struct scale *scale) {
  char *end;
  *scale = (struct scale){1, 1};
  if (!text) return fine();
  if (read_part(text, &end, &scale->num) &&
      (!*end || (*end == '/' && read_part(end + 1, &end, &scale->den))) && !*end)
    return fine();
  return failure(EXIT_USAGE,
                 "--scale %s: it must read NUM or NUM/DEN, whole numbers in 1..2147483648", text);
}

int64_t scale_apply(struct scale scale, int64_t x) {
  ASSERT(x >= -INT32_MAX && x <= INT32_MAX && scale.num <= INT64_C(1) << 31 && scale.den > 0);
  /* |x| num = q den + r; up when r > den / 2, or r = den / 2 and q is odd. */
  const int64_t product = (x < 0 ? -x : x) * scale.num;
  int64_t q = product / scale.den;
  const int64_t twice = 2 * (product % scale.den);
  if (twice > scale.den || (twice == scale.den && q % 2)) q++;
  return x < 0 ? -q : q;
}

int scale_places(struct scale scale) {
  enum { MOST = 9 };
  const double most = 65536.0 * (double)scale.num / (double)scale.den;
  int places = 0;
  while (places < MOST && (double)scale_unit(places + 1) <= most) places++;
  return places;
}

int64_t scale_unit(int places) {
  ASSERT(places >= 0 && places <= 18);
  int64_t unit = 1;
  while (places-- > 0) unit *= 10;
  return unit;
}

void weight_text(int64_t weight, int places, char text[32]) {
  const int64_t unit = scale_unit(places), size = weight < 0 ? -weight : weight;
  int n = snprintf(text, 32, "%s%" PRId64, weight < 0 ? "-" : "", size / unit);
  if (size % unit == 0) return;
  n += snprintf(text + n, 32 - (size_t)n, ".%0*" PRId64, places, size % unit);
  while (text[n - 1] == '0') text[--n] = 0;
}
