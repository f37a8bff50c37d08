/* Exchanges spikes between ranks: who fired, as index lists or bit masks. */
#include "exchange.h"
#include "core/mem.h"
#include "contract/transport.h"

#include <string.h>

/* What every rank learns of every other before any spike travels. */
struct spike_header {
  int64_t n_spikes; /* spikes that follow */
  int32_t dense;    /* they follow as a bit mask */
  int32_t request;
  struct lif_fault fault;
};

struct lif_exchange {
  const gidx *first_of_rank;
  int size, max_steps;
  struct spike_header *header; /* [size] */
  char *send, *receive;
  int64_t send_room, receive_room; /* bytes */
  int64_t *bytes;                  /* [size] of each rank's message */
  uint32_t *row;
  int64_t row_room;
  int64_t *step_ptr; /* [max_steps + 1] */
};

struct lif_exchange *lif_exchange_open(const struct comm *comm_facts, const gidx *first_of_rank,
                                       int max_steps) {
  struct lif_exchange *x = NEW_ZERO(struct lif_exchange, 1);
  x->first_of_rank = first_of_rank, x->size = comm_facts->size, x->max_steps = max_steps;
  x->header = NEW_ZERO(struct spike_header, x->size);
  x->bytes = NEW(int64_t, x->size);
  x->step_ptr = NEW(int64_t, max_steps + 1);
  return x;
}

void lif_exchange_close(struct lif_exchange *x) {
  mem_free(x->header), mem_free(x->send), mem_free(x->receive), mem_free(x->bytes);
  mem_free(x->row), mem_free(x->step_ptr), mem_free(x);
}

struct lif_fault lif_fault_smaller(struct lif_fault a, struct lif_fault b) {
  return lif_fault_before(&b, &a) ? b : a;
}

/* ---- messages ---- list: uint32 n_in_step [n_steps], uint32 row [n];  mask: uint64
 * [n_steps][words], bit i = own row i. */

static int64_t mask_words(const struct lif_exchange *x, int rank) {
  return (x->first_of_rank[rank + 1] - x->first_of_rank[rank] + 63) / 64;
}

/* Whole words of 8 bytes, so that the mask behind a list is aligned. */
static int64_t list_bytes(int64_t n, int n_steps) {
  return (n + n_steps + 1) / 2 * (int64_t)sizeof(uint64_t);
}

static int64_t mask_bytes(const struct lif_exchange *x, int rank, int n_steps) {
  return mask_words(x, rank) * n_steps * (int64_t)sizeof(uint64_t);
}

static int64_t message_bytes(const struct lif_exchange *x, int rank, int n_steps) {
  if (!x->header[rank].n_spikes) return 0;
  return x->header[rank].dense ? mask_bytes(x, rank, n_steps)
                               : list_bytes(x->header[rank].n_spikes, n_steps);
}

static void *room_for(void *p, int64_t *have, int64_t want, size_t bytes) {
  if (want <= *have) return p;
  mem_free(p);
  *have = want + want / 2;
  return mem_alloc(*have, bytes);
}

static void pack_list(const struct lif_spikes *mine, char *to) {
  uint32_t *count = (uint32_t *)(void *)to;
  for (int k = 0; k < mine->n_steps; k++)
    count[k] = (uint32_t)(mine->step_ptr[k + 1] - mine->step_ptr[k]);
  memcpy(count + mine->n_steps, mine->row, (size_t)mine->n * sizeof *mine->row);
}

static void pack_mask(const struct lif_spikes *mine, gidx first, int64_t words, char *to) {
  uint64_t *mask = (uint64_t *)(void *)to;
  memset(mask, 0, (size_t)(words * mine->n_steps) * sizeof *mask);
  for (int k = 0; k < mine->n_steps; k++)
    for (int64_t at = mine->step_ptr[k]; at < mine->step_ptr[k + 1]; at++) {
      const gidx i = mine->row[at] - first;
      mask[k * words + i / 64] |= 1ull << (i % 64);
    }
}

static void pack(struct lif_exchange *x, int rank, const struct lif_spikes *mine) {
  x->send = room_for(x->send, &x->send_room, message_bytes(x, rank, mine->n_steps), 1);
  if (!mine->n) return;
  if (x->header[rank].dense)
    pack_mask(mine, x->first_of_rank[rank], mask_words(x, rank), x->send);
  else
    pack_list(mine, x->send);
}

static uint32_t *take_list(const char *message, int n_steps, int k, uint32_t *to) {
  const uint32_t *count = (const uint32_t *)(const void *)message, *row = count + n_steps;
  for (int j = 0; j < k; j++) row += count[j];
  memcpy(to, row, count[k] * sizeof *row);
  return to + count[k];
}

static uint32_t *take_mask(const char *message, gidx first, int64_t words, int k, uint32_t *to) {
  const uint64_t *mask = (const uint64_t *)(const void *)message + k * words;
  for (int64_t w = 0; w < words; w++)
    for (uint64_t bits = mask[w]; bits; bits &= bits - 1)
      *to++ = (uint32_t)(first + w * 64 + __builtin_ctzll(bits));
  return to;
}

/* All messages, in rank order one behind the other, into spikes by step. */
static void unpack(struct lif_exchange *x, int n_steps, int64_t total, struct lif_spikes *all) {
  x->row = room_for(x->row, &x->row_room, total, sizeof *x->row);
  uint32_t *to = x->row;
  for (int k = 0; k < n_steps; k++) {
    const char *message = x->receive;
    x->step_ptr[k] = to - x->row;
    for (int r = 0; r < x->size; r++) {
      if (x->header[r].n_spikes && x->header[r].dense)
        to = take_mask(message, x->first_of_rank[r], mask_words(x, r), k, to);
      else if (x->header[r].n_spikes)
        to = take_list(message, n_steps, k, to);
      message += message_bytes(x, r, n_steps);
    }
  }
  x->step_ptr[n_steps] = to - x->row;
  ASSERT(to - x->row == total);
  *all =
      (struct lif_spikes){.n = total, .row = x->row, .n_steps = n_steps, .step_ptr = x->step_ptr};
}

/* Everybody's header to everybody; the strongest request and the smallest fault. */
static void swap_headers(struct lif_exchange *x, const struct comm *comm,
                         const struct lif_spikes *mine, int *request, struct lif_fault *fault) {
  struct spike_header h;
  memset(&h, 0, sizeof h);
  h.n_spikes = mine->n, h.request = *request, h.fault = *fault;
  h.dense = mask_bytes(x, comm->rank, mine->n_steps) < list_bytes(mine->n, mine->n_steps);
  comm_gather(comm, &h, sizeof h, x->header);
  for (int r = 0; r < x->size; r++) {
    if (x->header[r].request > *request) *request = x->header[r].request;
    *fault = lif_fault_smaller(*fault, x->header[r].fault);
  }
}

void lif_exchange_agree(struct lif_exchange *x, const struct comm *comm, int *request,
                        struct lif_fault *fault) {
  swap_headers(x, comm, &(struct lif_spikes){.n = 0}, request, fault);
}

void lif_exchange_spikes(struct lif_exchange *x, const struct comm *comm,
                         const struct lif_spikes *mine, int *request, struct lif_fault *fault,
                         struct lif_spikes *all) {
  if (comm->size == 1) {
    *all = fault->step == LIF_NO_FAULT ? *mine
                                       : (struct lif_spikes){.n_steps = 0, .step_ptr = x->step_ptr};
    return;
  }
  swap_headers(x, comm, mine, request, fault);
  int64_t total = 0, bytes = 0;
  for (int r = 0; r < x->size; r++)
    total += x->header[r].n_spikes, bytes += message_bytes(x, r, mine->n_steps);
  if (fault->step != LIF_NO_FAULT) total = bytes = 0;
  if (total == 0) {
    for (int k = 0; k <= mine->n_steps; k++) x->step_ptr[k] = 0;
    *all = (struct lif_spikes){.n_steps = mine->n_steps, .step_ptr = x->step_ptr};
    return;
  }
  pack(x, comm->rank, mine);
  x->receive = room_for(x->receive, &x->receive_room, bytes, 1);
  comm->via->gather(comm, x->send, message_bytes(x, comm->rank, mine->n_steps), x->receive,
                    x->receive_room, x->bytes);
  unpack(x, mine->n_steps, total, all);
}
