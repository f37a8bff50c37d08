/* Lists of arrays in device memory. */
#include "arrays.h"

void gpu_arrays_open(const struct arrays *list) {
  for (int i = 0; i < list->n; i++)
    arrays_set(list, i, gpu_zero(list->array[i].n, list->array[i].bytes));
}

void gpu_arrays_copy(const struct arrays *list, const struct arrays *host) {
  ASSERT(list->n == host->n);
  for (int i = 0; i < list->n; i++) {
    ASSERT(list->array[i].n == host->array[i].n && list->array[i].bytes == host->array[i].bytes);
    arrays_set(list, i, gpu_copy_of(arrays_get(host, i), list->array[i].n, list->array[i].bytes));
  }
}

void gpu_arrays_close(const struct arrays *list) {
  for (int i = 0; i < list->n; i++) {
    gpu_free(arrays_get(list, i));
    arrays_set(list, i, NULL);
  }
}
