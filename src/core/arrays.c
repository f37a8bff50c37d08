/* Lists of arrays, and their arrays in host memory. */
#include "arrays.h"
#include "alloc.h"

#include <stdlib.h>
#include <string.h>

void arrays_add(struct arrays *list, void *pointer, int64_t n, size_t bytes, bool zeroed) {
  if (list->n == ARRAYS_MOST) abort(); /* not DIE: libfascicle holds this file, but not MPI */
  list->array[list->n++] = (struct array){pointer, n, bytes, zeroed};
}

int64_t arrays_bytes(const struct arrays *list) {
  int64_t sum = 0;
  for (int i = 0; i < list->n; i++) sum += list->array[i].n * (int64_t)list->array[i].bytes;
  return sum;
}

void *arrays_get(const struct arrays *list, int i) {
  void *array;
  memcpy(&array, list->array[i].pointer, sizeof array);
  return array;
}

void arrays_set(const struct arrays *list, int i, void *array) {
  memcpy(list->array[i].pointer, &array, sizeof array);
}

int64_t arrays_place(const struct arrays *list, void *block, int64_t align) {
  int64_t used = 0;
  for (int i = 0; i < list->n; i++) {
    arrays_set(list, i, block ? (char *)block + used : NULL);
    used += (list->array[i].n * (int64_t)list->array[i].bytes + align - 1) / align * align;
  }
  return used;
}

void arrays_clear(const struct arrays *list) {
  for (int i = 0; i < list->n; i++) {
    const struct array *a = &list->array[i];
    if (a->zeroed && a->n > 0) memset(arrays_get(list, i), 0, (size_t)a->n * a->bytes);
  }
}

/* False: no memory. */
static bool open_one(const struct arrays *list, int i) {
  const struct array *a = &list->array[i];
  size_t total;
  arrays_set(list, i, NULL);
  if (!alloc_bytes(a->n, a->bytes, &total)) return false;
  if (!total) return true;
  void *block = alloc_block(total);
  if (!block) return false;
  if (a->zeroed)
    memset(block, 0, total);
  else if (FASCICLE_CHECKED)
    memset(block, 0xff, total);
  arrays_set(list, i, block);
  return true;
}

bool arrays_try_open(const struct arrays *list) {
  for (int i = 0; i < list->n; i++)
    if (!open_one(list, i)) {
      for (int k = i + 1; k < list->n; k++) arrays_set(list, k, NULL);
      arrays_close(list);
      return false;
    }
  return true;
}

void arrays_close(const struct arrays *list) {
  for (int i = 0; i < list->n; i++) {
    alloc_free(arrays_get(list, i));
    arrays_set(list, i, NULL);
  }
}
