/* Finds where a dataset lies in its file, for reading it past the library. */
#include "inside.h"

static int descriptor_of(const struct h5_file *file, const char *path) {
  void *handle;
  CHECK_H5(file, path, H5Fget_vfd_handle(file->id, H5P_DEFAULT, &handle));
  return *(int *)handle;
}

/* A page past the end of the file would kill a process that touches it. */
static bool lies_outside(const struct h5_file *file, const char *path, haddr_t offset,
                         int64_t bytes) {
  hsize_t size;
  CHECK_H5(file, path, H5Fget_filesize((hid_t)file->id, &size));
  return offset > size || (hsize_t)bytes > size - offset;
}

struct h5_location h5_locate(struct h5_file *file, const char *path, enum ftype type) {
  const struct h5_set set = h5_open_set(file, path);
  const struct h5_shape *shape = &set.shape;
  const hid_t made = CHECK_H5(file, path, H5Dget_create_plist(set.id));
  const int64_t bytes = shape->n * shape->width * (int64_t)ftype_bytes(type);
  struct h5_location at = {.bytes = bytes};
  if (bytes > 0) {
    if (shape->type != type || H5Pget_layout(made) != H5D_CONTIGUOUS ||
        H5Pget_external_count(made) > 0)
      h5_refuse(file, path, "not stored in one piece in this file; make the file again");
    const haddr_t offset = H5Dget_offset(set.id);
    if (offset == HADDR_UNDEF || !shape->whole || shape->stored != bytes ||
        lies_outside(file, path, offset, bytes))
      h5_refuse(file, path, "damaged: never written, or not all of it; make the file again");
    at.descriptor = descriptor_of(file, path), at.offset = (int64_t)offset;
  }
  H5Pclose(made);
  h5_close_set(&set);
  return at;
}
