/* Lists of arrays in device memory. */
#include "arrays.h"
#include "core/fail.h"
#include "gpu.h"

#include <string.h>

void gpu_arrays_add(struct gpu_arrays *list, void *pointer, int64_t n, size_t bytes) {
  if (list->n == GPU_MOST_ARRAYS)
    DIE(EXIT_RUNTIME, "more than %d arrays in one list: bug", GPU_MOST_ARRAYS);
  list->array[list->n++] = (struct gpu_array){pointer, n, bytes};
}

void gpu_arrays_open(const struct gpu_arrays *list) {
  for (int i = 0; i < list->n; i++) {
    void *array = gpu_zero(list->array[i].n, list->array[i].bytes);
    memcpy(list->array[i].pointer, &array, sizeof array);
  }
}

void gpu_arrays_close(const struct gpu_arrays *list) {
  for (int i = 0; i < list->n; i++) {
    void *array;
    memcpy(&array, list->array[i].pointer, sizeof array);
    gpu_free(array);
    memset(list->array[i].pointer, 0, sizeof array);
  }
}

int64_t gpu_arrays_bytes(const struct gpu_arrays *list) {
  int64_t sum = 0;
  for (int i = 0; i < list->n; i++) sum += list->array[i].n * (int64_t)list->array[i].bytes;
  return sum;
}
