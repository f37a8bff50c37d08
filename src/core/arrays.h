/* The arrays of one state, each listed once: the list allocates them, releases them and says how
 * many bytes they take, so that a prediction cannot miss one. A list holds addresses of pointers;
 * who allocates decides where the arrays stand (here: host memory; kernels/cuda/gpu: a GPU's). */
#ifndef FASCICLE_ARRAYS_H
#define FASCICLE_ARRAYS_H

#include "fail.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct array {
  void *pointer; /* address of the pointer to the array */
  int64_t n;     /* elements; none: the pointer stays NULL */
  size_t bytes;  /* of one */
  bool zeroed;   /* else its first contents are undefined */
};

enum { ARRAYS_MOST = 48 };
struct arrays {
  int n;
  struct array array[ARRAYS_MOST];
};

/* Adds the array of n elements that `pointer`, an lvalue, points to; `bytes` each in arrays_add,
 * for arrays whose type is chosen at run time. At most ARRAYS_MOST: one more is a bug, which ends
 * the program. */
#define ARRAY(list, pointer, n)      arrays_add((list), &(pointer), (n), sizeof *(pointer), false)
#define ARRAY_ZERO(list, pointer, n) arrays_add((list), &(pointer), (n), sizeof *(pointer), true)
void arrays_add(struct arrays *list, void *pointer, int64_t n, size_t bytes, bool zeroed);

/* What all of them take. */
int64_t arrays_bytes(const struct arrays *list);

/* The pointer of array i. */
void *arrays_get(const struct arrays *list, int i);
void arrays_set(const struct arrays *list, int i, void *array);

/* All of them in one block, at multiples of `align` bytes from its beginning, contents as they
 * stand; with `block` NULL pointers become NULL. Returns the bytes of the block. */
int64_t arrays_place(const struct arrays *list, void *block, int64_t align);

/* Sets those arrays to 0 that shall be: in host memory, after arrays_place. */
void arrays_clear(const struct arrays *list);

/* Counted host memory (core/alloc.h). False: there is not enough, and nothing is held. */
bool arrays_try_open(const struct arrays *list);
/* Releases them; pointers become NULL. */
void arrays_close(const struct arrays *list);

/* The same where running out is fatal. */
static inline void arrays_open(const struct arrays *list) {
  if (!arrays_try_open(list))
    DIE(EXIT_RUNTIME, "out of memory: %lld bytes asked for", (long long)arrays_bytes(list));
}

#ifdef __cplusplus
}
#endif
#endif
