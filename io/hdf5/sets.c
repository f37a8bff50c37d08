/* Makes, opens, writes and reads datasets by the library's own means. */
#include "inside.h"
#include "core/watchdog.h"

/* Make the groups on the way to an object. */
static hid_t with_groups(const struct h5_file *file, const char *path) {
  const hid_t links = CHECK_H5(file, path, H5Pcreate(H5P_LINK_CREATE));
  CHECK_H5(file, path, H5Pset_create_intermediate_group(links, 1));
  return links;
}

static hid_t make_of_rank(struct h5_file *file, const char *path, hid_t type, int rank, int64_t n,
                          int width, hid_t layout) {
  ASSERT(file->writing && n >= 0 && width >= 1);
  const hsize_t dims[2] = {(hsize_t)n, (hsize_t)width};
  const hid_t space = CHECK_H5(file, path, H5Screate_simple(rank, dims, NULL));
  const hid_t links = with_groups(file, path);
  const hid_t set =
      CHECK_H5(file, path, H5Dcreate2(file->id, path, type, space, links, layout, H5P_DEFAULT));
  H5Sclose(space), H5Pclose(links);
  if (layout != H5P_DEFAULT) H5Pclose(layout);
  return set;
}

hid_t h5_make_dataset(struct h5_file *file, const char *path, hid_t type, int64_t n, int width,
                      hid_t layout) {
  return make_of_rank(file, path, type, width > 1 ? 2 : 1, n, width, layout);
}

void h5_make_matrix(struct h5_file *file, const char *path, enum ftype type, int64_t n, int width) {
  CHECK_H5(file, path,
           H5Dclose(make_of_rank(file, path, h5_stored_type(type), 2, n, width, H5P_DEFAULT)));
}

/* Elements of a chunk; 0 when it is not chunked. */
static int64_t chunk_elements(hid_t made) {
  hsize_t chunk[H5S_MAX_RANK];
  if (H5Pget_layout(made) != H5D_CHUNKED) return 0;
  const int rank = H5Pget_chunk(made, H5S_MAX_RANK, chunk);
  int64_t n = 1;
  for (int i = 0; i < rank; i++)
    if (__builtin_mul_overflow(n, (int64_t)chunk[i], &n)) return INT64_MAX;
  return n;
}

/* Rows and elements per row, so that neither they nor their bytes overflow. */
static void take_dims(struct h5_file *file, const char *path, hid_t space, int64_t element,
                      struct h5_shape *shape) {
  hsize_t dims[H5S_MAX_RANK] = {0};
  int64_t bytes = 2 * element; /* with room to spare for sums of offsets */
  shape->rank = (int)CHECK_H5(file, path, H5Sget_simple_extent_dims(space, dims, NULL));
  shape->n = shape->rank > 0 ? (int64_t)dims[0] : 1, shape->width = 1;
  bool fits = shape->n >= 0 && !__builtin_mul_overflow(bytes, shape->n, &bytes);
  for (int i = 1; i < shape->rank; i++)
    fits = fits && dims[i] <= INT64_MAX / 16 &&
           !__builtin_mul_overflow(bytes, (int64_t)dims[i], &bytes) &&
           !__builtin_mul_overflow(shape->width, (int64_t)dims[i], &shape->width);
  if (!fits || shape->width > INT64_MAX / 16)
    h5_refuse(file, path, "claims more elements than can be");
}

static struct h5_shape shape_of(struct h5_file *file, const char *path, hid_t set) {
  /* Deflate makes at most 1032 bytes of one. */
  enum { MOST_DEFLATED = 1100 };
  struct h5_shape shape = {.width = 1};
  hsize_t in_file;
  const hid_t type = CHECK_H5(file, path, H5Dget_type(set)),
              space = CHECK_H5(file, path, H5Dget_space(set));
  const hid_t made = CHECK_H5(file, path, H5Dget_create_plist(set));
  if (H5Fget_filesize((hid_t)file->id, &in_file) < 0 || file->writing) in_file = INT64_MAX;
  const int64_t element = (int64_t)H5Tget_size(type), chunk = chunk_elements(made);
  if (element <= 0) h5_refuse(file, path, "has elements without a size");
  take_dims(file, path, space, element, &shape);
  shape.type = h5_type_of(type), shape.element = element;
  shape.stored = (int64_t)H5Dget_storage_size(set);
  shape.chunk_bytes = chunk > INT64_MAX / element ? INT64_MAX : chunk * element;
  const int64_t bytes = shape.n * shape.width * element, most = (int64_t)in_file;
  shape.whole = shape.stored >= 0 && shape.stored <= most && H5Pget_layout(made) != H5D_VIRTUAL &&
                H5Pget_external_count(made) == 0 &&
                bytes <= (chunk ? MOST_DEFLATED * shape.stored : shape.stored);
  H5Pclose(made), H5Sclose(space), H5Tclose(type);
  return shape;
}

struct h5_set h5_open_set(struct h5_file *file, const char *path) {
  const hid_t id = CHECK_H5(file, path, H5Oopen(file->id, path, h5_links(file)));
  if (H5Iget_type(id) != H5I_DATASET) h5_refuse(file, path, "is not a dataset");
  return (struct h5_set){file, path, id, shape_of(file, path, id)};
}

void h5_close_set(const struct h5_set *set) {
  if (set->file->writing)
    CHECK_H5(set->file, set->path, H5Dclose(set->id));
  else
    H5Dclose(set->id);
}

bool h5_shape(struct h5_file *file, const char *path, struct h5_shape *shape) {
  if (!h5_is_kind(file, path, H5I_DATASET)) return false;
  const struct h5_set set = h5_open_set(file, path);
  *shape = set.shape;
  h5_close_set(&set);
  return true;
}

int64_t h5_piece_rows(int width) {
  return width < H5_CHUNK ? H5_CHUNK / width : 1;
}

void h5_write(struct h5_file *file, const char *path, enum ftype type, int64_t n, int width,
              const void *data) {
  const hid_t set = h5_make_dataset(file, path, h5_stored_type(type), n, width, H5P_DEFAULT);
  watchdog_pause("HDF5 write");
  if (n > 0)
    CHECK_H5(file, path, H5Dwrite(set, h5_memory_type(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
  watchdog_resume();
  CHECK_H5(file, path, H5Dclose(set));
}

void h5_write_constant(struct h5_file *file, const char *path, enum ftype type, int64_t n,
                       int64_t value) {
  const hid_t layout = CHECK_H5(file, path, H5Pcreate(H5P_DATASET_CREATE));
  const hsize_t chunk = (hsize_t)(n < H5_CHUNK ? n : H5_CHUNK);
  if (n > 0) CHECK_H5(file, path, H5Pset_chunk(layout, 1, &chunk));
  CHECK_H5(file, path, H5Pset_fill_value(layout, H5T_NATIVE_INT64, &value));
  CHECK_H5(file, path, H5Dclose(h5_make_dataset(file, path, h5_stored_type(type), n, 1, layout)));
}

void h5_read_plain(const struct h5_set *set, enum ftype type, int64_t first, int64_t n,
                   void *data) {
  struct h5_file *file = set->file;
  ASSERT(n > 0 && first >= 0 && first <= set->shape.n - n);
  const hid_t space = CHECK_H5(file, set->path, H5Dget_space(set->id));
  hsize_t start[H5S_MAX_RANK] = {(hsize_t)first}, count[H5S_MAX_RANK];
  CHECK_H5(file, set->path, H5Sget_simple_extent_dims(space, count, NULL));
  count[0] = (hsize_t)n;
  CHECK_H5(file, set->path, H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
  const hid_t memory = CHECK_H5(file, set->path, H5Screate_simple(set->shape.rank, count, NULL));
  CHECK_H5(file, set->path,
           H5Dread(set->id, h5_memory_type(type), memory, space, H5P_DEFAULT, data));
  H5Sclose(memory), H5Sclose(space);
}

/* Too many too small chunks: the library takes nearly a kilobyte for each one that a call touches.
 */
static bool crumbles(const struct h5_shape *shape) {
  enum { MOST_CHUNKS = 1 << 16, LEAST_BYTES = 1024 };
  const int64_t bytes = shape->n * shape->width * shape->element;
  return shape->chunk_bytes > 0 && shape->chunk_bytes < LEAST_BYTES &&
         bytes / shape->chunk_bytes > MOST_CHUNKS;
}

int h5_filter(hid_t made, int i) {
  unsigned flags, config;
  size_t none = 0; /* becomes the number of its parameters, which are not asked for */
  return H5Pget_filter2(made, (unsigned)i, &flags, &none, NULL, 0, NULL, &config);
}

void h5_check_stored(const struct h5_set *set) {
  struct h5_file *file = set->file;
  const struct h5_shape *shape = &set->shape;
  const char *path = set->path;
  if (!shape->whole)
    h5_refuse(file, path, "was never written, or not all of it, or lies in another file");
  if (shape->chunk_bytes > H5_MOST_CHUNK)
    h5_refuse(file, path, "is stored in larger chunks than ours");
  if (crumbles(shape))
    h5_refuse(file, path, "is stored in too many too small chunks; rechunk it with h5repack");
  const hid_t made = CHECK_H5(file, path, H5Dget_create_plist(set->id));
  const int n = (int)CHECK_H5(file, path, H5Pget_nfilters(made));
  for (int i = 0; i < n; i++)
    if (h5_filter(made, i) != H5Z_FILTER_SHUFFLE && h5_filter(made, i) != H5Z_FILTER_DEFLATE)
      h5_refuse(file, path, "is stored with a filter that fascicle does not write");
  H5Pclose(made);
}
