/* Reads rows of a dataset, however they are stored: checked, packed, or otherwise. */
#include "inside.h"
#include "core/mem.h"
#include "core/watchdog.h"

void h5_read(struct h5_file *file, const char *path, enum ftype type, int64_t first, int64_t n,
             void *data) {
  h5_read_rows(file, path, type, first, n, 1, data);
}

void h5_read_rows(struct h5_file *file, const char *path, enum ftype type, int64_t first, int64_t n,
                  int64_t width, void *data) {
  if (n == 0) return;
  const struct h5_set set = h5_open_set(file, path);
  if (first < 0 || n < 0 || first > set.shape.n - n || set.shape.rank < 1)
    h5_refuse(file, path, "holds fewer rows than the file promises");
  if (set.shape.width != width)
    h5_refuse(file, path, "has rows of another width than the file promises");
  if (set.shape.type == F_OTHER)
    h5_refuse(file, path, "does not hold numbers of a type that fascicle writes");
  h5_check_stored(&set);
  int64_t chunk_rows;
  watchdog_pause("HDF5 read");
  uint32_t *sums = h5_checksums(&set, type);
  if (sums)
    h5_read_checked(&set, sums, first, n, data);
  else if (set.shape.stored > 0 && h5_is_packed(&set, type, &chunk_rows))
    h5_read_packed(&set, type, chunk_rows, first, n, data);
  else
    h5_read_plain(&set, type, first, n, data);
  watchdog_resume();
  mem_free(sums);
  h5_close_set(&set);
}
