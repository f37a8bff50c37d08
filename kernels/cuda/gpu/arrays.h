/* The arrays of a state in device memory, each listed once: the list allocates them, releases them
 * and says how many bytes they take, so that a prediction cannot miss one. */
#ifndef FASCICLE_GPU_ARRAYS_H
#define FASCICLE_GPU_ARRAYS_H

#include <stddef.h>
#include <stdint.h>

struct gpu_array {
  void *pointer; /* address of the pointer to the array */
  int64_t n;     /* elements */
  size_t bytes;  /* of one */
};

enum { GPU_MOST_ARRAYS = 32 };
struct gpu_arrays {
  int n;
  struct gpu_array array[GPU_MOST_ARRAYS];
};

/* Adds the array of n elements that `pointer`, an lvalue, points to. DIEs beyond GPU_MOST_ARRAYS.
 */
#define GPU_ARRAY(list, pointer, n) gpu_arrays_add((list), &(pointer), (n), sizeof *(pointer))
void gpu_arrays_add(struct gpu_arrays *list, void *pointer, int64_t n, size_t bytes);

/* As gpu_zero for each. */
void gpu_arrays_open(const struct gpu_arrays *list);

/* As gpu_free for each; pointers become NULL. */
void gpu_arrays_close(const struct gpu_arrays *list);

/* What gpu_arrays_open would allocate; needs no GPU. */
int64_t gpu_arrays_bytes(const struct gpu_arrays *list);

#endif
