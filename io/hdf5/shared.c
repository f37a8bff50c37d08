/* One file written by all ranks through MPI-IO. The file and its datasets are made beforehand by
 * one process, so that nothing but data moves here. */
#include "inside.h"
#include "core/mem.h"
#include "core/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A single transfer stays under 1 GiB: larger ones have failed silently in
 * several MPI libraries. */
static const int64_t PIECE_BYTES = 1 << 29;

void h5_make_rows(struct h5_file *file, const char *path, enum ftype type, int64_t n, int width) {
  const hid_t layout = CHECK_H5(file, path, H5Pcreate(H5P_DATASET_CREATE));
  CHECK_H5(file, path, H5Pset_layout(layout, H5D_CONTIGUOUS));
  CHECK_H5(file, path, H5Pset_alloc_time(layout, H5D_ALLOC_TIME_EARLY));
  CHECK_H5(file, path, H5Pset_fill_time(layout, H5D_FILL_TIME_NEVER));
  CHECK_H5(file, path,
           H5Dclose(h5_make_dataset(file, path, h5_stored_type(type), n, width, layout)));
}

/* Rows of one collective transfer; a rank that has none left joins with an empty selection. */
static void put_piece(const struct h5_set *set, hid_t transfer, enum ftype type, int64_t first,
                      int64_t n, const void *data) {
  struct h5_file *file = set->file;
  const char *path = set->path, nothing = 0;
  const hsize_t start[2] = {(hsize_t)first, 0}, count[2] = {(hsize_t)n, (hsize_t)set->shape.width};
  const hid_t space = CHECK_H5(file, path, H5Dget_space(set->id));
  const hid_t memory = CHECK_H5(file, path, H5Screate_simple(set->shape.rank, count, NULL));
  if (n > 0)
    CHECK_H5(file, path, H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
  else
    CHECK_H5(file, path, H5Sselect_none(space)), CHECK_H5(file, path, H5Sselect_none(memory));
  CHECK_H5(
      file, path,
      H5Dwrite(set->id, h5_memory_type(type), memory, space, transfer, n > 0 ? data : &nothing));
  H5Sclose(memory), H5Sclose(space);
}

/* For rows [first, first + n) to be written; fatal when it has none such. */
static struct h5_set open_rows(struct h5_file *file, const char *path, int64_t first, int64_t n) {
  const struct h5_set set = h5_open_set(file, path);
  if (first < 0 || n < 0 || first > set.shape.n - n)
    h5_refuse(file, path, "rows outside of the dataset");
  return set;
}

void h5_put(struct h5_file *file, const char *path, enum ftype type, int64_t first, int64_t n,
            const void *data) {
  const struct h5_set set = open_rows(file, path, first, n);
  watchdog_pause("HDF5 write");
  put_piece(&set, H5P_DEFAULT, type, first, n, data);
  watchdog_resume();
  h5_close_set(&set);
}

/* What one rank alone cannot open (a folder that its host does not see) is found before the
 * collective call, which would hold the others. */
static struct status can_open(const char *path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    return failure(EXIT_OUTPUT, "%s: cannot open for writing: %s", path, strerror(errno));
  close(file);
  return fine();
}

struct status h5_open_shared(const struct comm *comm, const char *path, struct h5_file *file) {
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  *file = (struct h5_file){.writing = true, .shared = true};
  TRY(agree(comm, can_open(path)));
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (access < 0 || H5Pset_fapl_mpio(access, comm->mpi, MPI_INFO_NULL) < 0 ||
      H5Pset_all_coll_metadata_ops(access, true) < 0 ||
      H5Pset_coll_metadata_write(access, true) < 0)
    DIE(EXIT_RUNTIME, "%s: HDF5: no access list", path);
  pulse("HDF5 open"); /* no pause: it is quick, and MPI-IO waits for ever when it fails on one rank
                         only */
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
  const struct h5_set set = open_rows(file, path, first, n);
  const hid_t transfer = CHECK_H5(file, path, H5Pcreate(H5P_DATASET_XFER));
  const int64_t row_bytes = set.shape.width * (int64_t)ftype_bytes(type);
  const int64_t piece = row_bytes < PIECE_BYTES ? PIECE_BYTES / row_bytes : 1;
  int64_t rounds = (n + piece - 1) / piece;
  comm_max_i64(comm, &rounds, 1);
  CHECK_H5(file, path, H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE));
  watchdog_pause("HDF5 collective write");
  for (int64_t i = 0; i < rounds; i++) {
    const int64_t at = i * piece < n ? i * piece : n, here = n - at < piece ? n - at : piece;
    put_piece(&set, transfer, type, first + at, here, (const char *)data + at * row_bytes);
  }
  watchdog_resume();
  H5Pclose(transfer);
  h5_close_set(&set);
}
