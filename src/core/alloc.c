/* Memory that is counted: what core/mem.h and core/arrays.h stand on. */
#include "alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 64 };
/* Blocks of several megabytes ask for large pages: rows of edges and sums are entered at random,
 * and with small pages many of those entries would walk the page tables. A system without them
 * ignores the wish. */
enum { LARGE_PAGE = 2 << 20 };

/* The header in front of every block; 64 bytes so that the block itself keeps the alignment. */
struct header {
  size_t bytes;
};

static atomic_llong held, peak;

static struct header *header_of(const void *p) {
  return (struct header *)((uintptr_t)p - ALIGN);
}

static void account(long long change) {
  long long now = atomic_fetch_add(&held, change) + change;
  long long top = atomic_load(&peak);
  while (now > top && !atomic_compare_exchange_weak(&peak, &top, now)) {
  }
}

bool alloc_bytes(int64_t n, size_t bytes, size_t *total) {
  return n >= 0 && !__builtin_mul_overflow((size_t)n, bytes, total) &&
         *total <= SIZE_MAX - 2 * ALIGN;
}

void *alloc_block(size_t bytes) {
  const size_t whole = (bytes + 2 * ALIGN - 1) / ALIGN * ALIGN;
  const bool large = whole >= 2 * LARGE_PAGE;
  void *base = NULL;
  if (posix_memalign(&base, large ? LARGE_PAGE : ALIGN, whole)) return NULL;
  if (large) madvise(base, whole, MADV_HUGEPAGE);
  ((struct header *)base)->bytes = bytes;
  account((long long)bytes);
  return (char *)base + ALIGN;
}

void alloc_free(void *p) {
  if (!p) return;
  account(-(long long)header_of(p)->bytes);
  free(header_of(p));
}

size_t alloc_size(const void *p) {
  return header_of(p)->bytes;
}

int64_t alloc_held(void) {
  return atomic_load(&held);
}

int64_t alloc_peak(void) {
  return atomic_load(&peak);
}

void alloc_peak_restart(void) {
  atomic_store(&peak, atomic_load(&held));
}
