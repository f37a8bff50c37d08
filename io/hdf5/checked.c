/* Reads and writes contiguous datasets with a CRC-32 for every H5_CHUNK elements: as fast as the
 * disk, open to every HDF5 reader, and a turned bit does not go unseen. */
#include "inside.h"
#include "core/mem.h"

#include <string.h>
#include <zlib.h>

static int64_t pieces_of(int64_t n, int width) {
  const int64_t rows = h5_piece_rows(width);
  return (n + rows - 1) / rows;
}

static uint32_t sum_of(const void *data, int64_t bytes) {
  return (uint32_t)crc32_z(0, data, (size_t)bytes);
}

void h5_write_checked(struct h5_file *file, const char *path, enum ftype type, int64_t n, int width,
                      const void *data) {
  const int64_t rows = h5_piece_rows(width), row_bytes = width * (int64_t)ftype_bytes(type);
  const int64_t pieces = pieces_of(n, width);
  uint32_t *sums = NEW(uint32_t, pieces);
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t p = 0; p < pieces; p++) {
    const int64_t here = n - p * rows < rows ? n - p * rows : rows;
    sums[p] = sum_of((const char *)data + p * rows * row_bytes, here * row_bytes);
  }
  h5_write(file, path, type, n, width, data);
  if (pieces)
    h5_put_values(file, path, H5_CHECKSUMS, F_U32, int_from(pieces, "checksums of a dataset"),
                  sums);
  mem_free(sums);
}

uint32_t *h5_checksums(const struct h5_set *set, enum ftype type) {
  struct h5_file *file = set->file;
  const char *path = set->path;
  if (set->shape.type != type || !h5_has_attribute(file, path, H5_CHECKSUMS)) return NULL;
  const hid_t attribute = CHECK_H5(
      file, path, H5Aopen_by_name(file->id, path, H5_CHECKSUMS, H5P_DEFAULT, h5_links(file)));
  const hid_t space = CHECK_H5(file, path, H5Aget_space(attribute));
  const int64_t pieces = pieces_of(set->shape.n, (int)set->shape.width);
  const hid_t stored = CHECK_H5(file, path, H5Aget_type(attribute));
  if (H5Sget_simple_extent_npoints(space) != pieces || h5_type_of(stored) != F_U32)
    h5_refuse(file, path, "its list of checksums is damaged");
  uint32_t *sums = NEW(uint32_t, pieces);
  CHECK_H5(file, path, H5Aread(attribute, H5T_NATIVE_UINT32, sums));
  H5Tclose(stored), H5Sclose(space), H5Aclose(attribute);
  return sums;
}

/* Rows [first, first + n), one piece, whose checksum is known. */
static void read_piece(const struct h5_set *set, uint32_t sum, int64_t first, int64_t n, void *to) {
  const struct h5_shape *shape = &set->shape;
#pragma omp critical(hdf5)
  h5_read_plain(set, shape->type, first, n, to);
  if (sum_of(to, n * shape->width * (int64_t)ftype_bytes(shape->type)) != sum)
    DIE(EXIT_INPUT, "%s: the file is damaged: %s, rows %lld to %lld, do not match their checksum",
        set->file->path, set->path, (long long)first, (long long)(first + n - 1));
}

void h5_read_checked(const struct h5_set *set, const uint32_t *sums, int64_t first, int64_t n,
                     void *data) {
  const struct h5_shape *shape = &set->shape;
  ASSERT(sums && n > 0 && first >= 0 && first <= shape->n - n);
  const int64_t rows = h5_piece_rows((int)shape->width);
  const int64_t row = shape->width * (int64_t)ftype_bytes(shape->type);
#pragma omp parallel
  {
    char *room = NULL;
#pragma omp for schedule(dynamic, 1)
    for (int64_t p = first / rows; p <= (first + n - 1) / rows; p++) {
      const int64_t from = p * rows, end = from + rows < shape->n ? from + rows : shape->n;
      /* Rows of this piece that were asked for. */
      const int64_t low = from > first ? from : first, high = end < first + n ? end : first + n;
      char *to = (char *)data + (low - first) * row;
      if (high - low == end - from) {
        read_piece(set, sums[p], from, end - from, to);
        continue;
      }
      if (!room) room = mem_alloc(rows, (size_t)row);
      read_piece(set, sums[p], from, end - from, room);
      memcpy(to, room + (low - from) * row, (size_t)((high - low) * row));
    }
    mem_free(room);
  }
}
