/* One file written by all ranks through MPI-IO. The file and its datasets are made beforehand by one process,
 * so that nothing but data moves here. */
#include "h5_inside.h"
#include "mem.h"
#include "watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A single transfer stays under 1 GiB: larger ones have failed silently in several MPI libraries. */
static const int64_t PIECE_BYTES = 1 << 29;

void h5_make_rows(struct h5_file *file, const char *path, enum ftype type, int64_t n, int width) {
  const hid_t layout = CHECK_H5(file, path, H5Pcreate(H5P_DATASET_CREATE));
  CHECK_H5(file, path, H5Pset_layout(layout, H5D_CONTIGUOUS));
  CHECK_H5(file, path, H5Pset_alloc_time(layout, H5D_ALLOC_TIME_EARLY));
  CHECK_H5(file, path, H5Pset_fill_time(layout, H5D_FILL_TIME_NEVER));
  CHECK_H5(file, path, H5Dclose(h5_make_dataset(file, path, h5_stored_type(type), n, width, layout)));
}

/* Rows of one collective transfer; a rank that has none left joins with an empty selection. */
static void put_piece(struct h5_file *file, const char *path, hid_t set, hid_t transfer, enum ftype type,
                      const struct h5_shape *shape, int64_t first, int64_t n, const void *data) {
  const hsize_t start[2] = {(hsize_t)first, 0}, count[2] = {(hsize_t)n, (hsize_t)shape->width};
  const hid_t space = CHECK_H5(file, path, H5Dget_space(set));
  const hid_t memory = CHECK_H5(file, path, H5Screate_simple(shape->rank, count, NULL));
  if (n > 0)
    CHECK_H5(file, path, H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
  else
    CHECK_H5(file, path, H5Sselect_none(space)), CHECK_H5(file, path, H5Sselect_none(memory));
  const char nothing = 0;
  CHECK_H5(file, path, H5Dwrite(set, h5_memory_type(type), memory, space, transfer, n > 0 ? data : &nothing));
  H5Sclose(memory), H5Sclose(space);
}

void h5_put(struct h5_file *file, const char *path, enum ftype type, int64_t first, int64_t n,
            const void *data) {
  const hid_t set = h5_open_dataset(file, path);
  const struct h5_shape shape = h5_shape_of(file, path, set);
  if (first < 0 || n < 0 || first > shape.n - n) h5_refuse(file, path, "rows outside of the dataset");
  watchdog_pause("HDF5 write");
  put_piece(file, path, set, H5P_DEFAULT, type, &shape, first, n, data);
  watchdog_resume();
  CHECK_H5(file, path, H5Dclose(set));
}

/* What one rank alone cannot open (a folder that its host does not see) is found before the collective call,
 * which would hold the others. */
static struct status can_open(const char *path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return failure(EXIT_OUTPUT, "%s: cannot open for writing: %s", path, strerror(errno));
  close(file);
  return fine();
}

struct status h5_open_shared(const struct comm *comm, const char *path, struct h5_file *file) {
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  *file = (struct h5_file){.writing = true, .shared = true};
  TRY(agree(comm, can_open(path)));
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (access < 0 || H5Pset_fapl_mpio(access, comm->mpi, MPI_INFO_NULL) < 0 ||
      H5Pset_all_coll_metadata_ops(access, true) < 0 || H5Pset_coll_metadata_write(access, true) < 0)
    DIE(EXIT_RUNTIME, "%s: HDF5: no access list", path);
  pulse("HDF5 open"); /* no pause: it is quick, and MPI-IO waits for ever when it fails on one rank only */
  file->id = H5Fopen(path, H5F_ACC_RDWR, access);
  if (file->id < 0) { /* fatal: the others may wait within the call */
    char reason[256];
    h5_reason(reason, sizeof reason);
    DIE(EXIT_OUTPUT, "%s: cannot open through MPI-IO: %s", path, reason);
  }
  H5Pclose(access);
  file->path = mem_string(path);
  h5_set_links(file);
  return fine();
}

void h5_put_rows(const struct comm *comm, struct h5_file *file, const char *path, enum ftype type,
                 int64_t first, int64_t n, const void *data) {
  const hid_t set = h5_open_dataset(file, path), transfer = CHECK_H5(file, path, H5Pcreate(H5P_DATASET_XFER));
  const struct h5_shape shape = h5_shape_of(file, path, set);
  const int64_t row_bytes = shape.width * (int64_t)ftype_bytes(type);
  const int64_t piece = row_bytes < PIECE_BYTES ? PIECE_BYTES / row_bytes : 1;
  if (first < 0 || n < 0 || first > shape.n - n) h5_refuse(file, path, "rows outside of the dataset");
  int64_t rounds = (n + piece - 1) / piece;
  comm_max_i64(comm, &rounds, 1);
  CHECK_H5(file, path, H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE));
  watchdog_pause("HDF5 collective write");
  for (int64_t i = 0; i < rounds; i++) {
    const int64_t at = i * piece < n ? i * piece : n, here = n - at < piece ? n - at : piece;
    put_piece(file, path, set, transfer, type, &shape, first + at, here, (const char *)data + at * row_bytes);
  }
  watchdog_resume();
  H5Pclose(transfer);
  CHECK_H5(file, path, H5Dclose(set));
}
