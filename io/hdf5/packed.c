/* Packs and unpacks datasets with all threads: shuffle and deflate 1, which every HDF5 reader
 * knows, handed to the library as finished chunks. The library itself would do one chunk after the
 * other. */
#include "inside.h"
#include "core/mem.h"
#include "core/watchdog.h"

#include <omp.h>
#include <string.h>
#include <zlib.h>

enum { DEFLATE_LEVEL = 1 };

/* Byte b of every element stands together: the high bytes of small numbers
 * become one run of zeros. */
static void shuffle(const unsigned char *in, int64_t n, size_t element, unsigned char *out) {
  for (size_t b = 0; b < element; b++)
    for (int64_t i = 0; i < n; i++) out[(int64_t)b * n + i] = in[i * (int64_t)element + (int64_t)b];
}

static void unshuffle(const unsigned char *in, int64_t n, size_t element, unsigned char *out) {
  for (size_t b = 0; b < element; b++)
    for (int64_t i = 0; i < n; i++) out[i * (int64_t)element + (int64_t)b] = in[(int64_t)b * n + i];
}

void h5_make_packed(struct h5_file *file, const char *path, enum ftype type, int64_t n, int width) {
  const hid_t layout = CHECK_H5(file, path, H5Pcreate(H5P_DATASET_CREATE));
  const int64_t rows = h5_piece_rows(width);
  const hsize_t chunk[2] = {(hsize_t)(n < rows ? n : rows), (hsize_t)width};
  if (n > 0) {
    CHECK_H5(file, path, H5Pset_chunk(layout, width > 1 ? 2 : 1, chunk));
    CHECK_H5(file, path, H5Pset_shuffle(layout));
    CHECK_H5(file, path, H5Pset_deflate(layout, DEFLATE_LEVEL));
  }
  CHECK_H5(file, path,
           H5Dclose(h5_make_dataset(file, path, h5_stored_type(type), n, width, layout)));
}

/* One chunk: `have` of its bytes exist, the rest is padding. Returns the packed size. */
static uLongf pack(const unsigned char *data, int64_t have, int64_t bytes, size_t element,
                   unsigned char *plain, unsigned char *mixed, unsigned char *packed) {
  if (have < bytes) {
    memcpy(plain, data, (size_t)have), memset(plain + have, 0, (size_t)(bytes - have));
    data = plain;
  }
  shuffle(data, bytes / (int64_t)element, element, mixed);
  uLongf size = compressBound((uLong)bytes);
  if (compress2(packed, &size, mixed, (uLong)bytes, DEFLATE_LEVEL) != Z_OK)
    DIE(EXIT_RUNTIME, "zlib: compress2 failed");
  return size;
}

void h5_put_packed(struct h5_file *file, const char *path, int64_t first, int64_t n,
                   const void *data) {
  const struct h5_set set = h5_open_set(file, path);
  const struct h5_shape *shape = &set.shape;
  const int64_t piece = h5_piece_rows((int)shape->width),
                rows = shape->n < piece ? shape->n : piece;
  const size_t element = ftype_bytes(shape->type);
  const int64_t row_bytes = shape->width * (int64_t)element, bytes = rows * row_bytes;
  ASSERT(first % piece == 0 && first >= 0 && first <= shape->n - n);
  ASSERT(n % piece == 0 || first + n == shape->n); /* only the last chunk is padded */
  const int64_t n_chunks = n > 0 ? (n + rows - 1) / rows : 0;
  watchdog_pause("HDF5 write");
#pragma omp parallel
  {
    unsigned char *plain = NEW(unsigned char, bytes), *mixed = NEW(unsigned char, bytes);
    unsigned char *packed = NEW(unsigned char, (int64_t)compressBound((uLong)bytes));
#pragma omp for ordered schedule(dynamic, 1)
    for (int64_t c = 0; c < n_chunks; c++) {
      const int64_t from = c * rows, have = n - from < rows ? n - from : rows;
      const unsigned char *at = (const unsigned char *)data + from * row_bytes;
      const uLongf size = pack(at, have * row_bytes, bytes, element, plain, mixed, packed);
      const hsize_t offset[2] = {(hsize_t)(first + from), 0};
#pragma omp ordered
      CHECK_H5(file, path, H5Dwrite_chunk(set.id, H5P_DEFAULT, 0, offset, size, packed));
    }
    mem_free(plain), mem_free(mixed), mem_free(packed);
  }
  watchdog_resume();
  h5_close_set(&set);
}

void h5_write_packed(struct h5_file *file, const char *path, enum ftype type, int64_t n, int width,
                     const void *data) {
  h5_make_packed(file, path, type, n, width);
  h5_put_packed(file, path, 0, n, data);
}

bool h5_is_packed(const struct h5_set *set, enum ftype type, int64_t *chunk_rows) {
  const hid_t layout = CHECK_H5(set->file, set->path, H5Dget_create_plist(set->id));
  const hid_t stored = CHECK_H5(set->file, set->path, H5Dget_type(set->id));
  const hid_t space = CHECK_H5(set->file, set->path, H5Dget_space(set->id));
  hsize_t chunk[H5S_MAX_RANK] = {0}, dims[H5S_MAX_RANK] = {0};
  const int rank = H5Sget_simple_extent_dims(space, dims, NULL);
  bool is =
      H5Pget_layout(layout) == H5D_CHUNKED && H5Pget_chunk(layout, H5S_MAX_RANK, chunk) == rank &&
      H5Pget_nfilters(layout) == 2 && h5_filter(layout, 0) == H5Z_FILTER_SHUFFLE &&
      h5_filter(layout, 1) == H5Z_FILTER_DEFLATE && H5Tequal(stored, h5_memory_type(type)) > 0;
  for (int i = 1; i < rank; i++) is = is && chunk[i] == dims[i]; /* whole rows */
  *chunk_rows = (int64_t)chunk[0];
  H5Sclose(space), H5Tclose(stored), H5Pclose(layout);
  return is;
}

/* One thread's room for a chunk on its way: as stored, inflated, in order. */
struct unpacker {
  unsigned char *packed, *mixed, *plain;
  int64_t packed_bytes;
};

/* The stored bytes of the chunk that begins at a row; 0 for one that was never written. */
static int64_t fetch(const struct h5_set *set, int64_t row, hsize_t most, struct unpacker *u) {
  const hsize_t offset[H5S_MAX_RANK] = {(hsize_t)row};
  hsize_t size = 0;
  uint32_t skipped = 0;
  if (H5Dget_chunk_storage_size(set->id, offset, &size) < 0 || size == 0)
    h5_refuse(set->file, set->path, "a part was never written");
  if (size > most) h5_refuse(set->file, set->path, "a chunk is larger than deflate makes it");
  if ((int64_t)size > u->packed_bytes) {
    mem_free(u->packed);
    u->packed = NEW(unsigned char, u->packed_bytes = (int64_t)size);
  }
  CHECK_H5(set->file, set->path, H5Dread_chunk(set->id, H5P_DEFAULT, offset, &skipped, u->packed));
  if (skipped) h5_refuse(set->file, set->path, "a chunk was stored without its filters");
  return (int64_t)size;
}

void h5_read_packed(const struct h5_set *set, enum ftype type, int64_t chunk_rows, int64_t first,
                    int64_t n, void *data) {
  ASSERT(n > 0 && first >= 0 && first <= set->shape.n - n && chunk_rows > 0);
  const size_t element = ftype_bytes(type);
  const int64_t items = chunk_rows * set->shape.width, row = set->shape.width * (int64_t)element;
  const int64_t bytes = chunk_rows * row;
  const int64_t from_chunk = first / chunk_rows, to_chunk = (first + n - 1) / chunk_rows;
#pragma omp parallel
  {
    struct unpacker u = {.mixed = NEW(unsigned char, bytes), .plain = NEW(unsigned char, bytes)};
#pragma omp for schedule(dynamic, 1)
    for (int64_t c = from_chunk; c <= to_chunk; c++) {
      int64_t size;
#pragma omp critical(hdf5)
      size = fetch(set, c * chunk_rows, compressBound((uLong)bytes), &u);
      uLongf got = (uLongf)bytes;
      if (uncompress(u.mixed, &got, u.packed, (uLong)size) != Z_OK || (int64_t)got != bytes)
        h5_refuse(set->file, set->path,
                  "the file is damaged: a chunk does not inflate (its checksum is wrong)");
      /* Rows of this chunk that were asked for. */
      const int64_t low = c * chunk_rows > first ? c * chunk_rows : first;
      const int64_t end = (c + 1) * chunk_rows < first + n ? (c + 1) * chunk_rows : first + n;
      unsigned char *to = (unsigned char *)data + (low - first) * row;
      const bool whole = end - low == chunk_rows;
      unshuffle(u.mixed, items, element, whole ? to : u.plain);
      if (!whole) memcpy(to, u.plain + (low - c * chunk_rows) * row, (size_t)((end - low) * row));
    }
    mem_free(u.packed), mem_free(u.mixed), mem_free(u.plain);
  }
}
