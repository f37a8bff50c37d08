/* Groups of ranks, by MPI: starting, ending, splitting, and what they say to each other. */
#include "comm.h"
#include "mem.h"
#include "pulse.h"
#include "peers.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 1 << 30 }; /* bytes in one MPI call */

int int_from(int64_t n, const char *what) {
  if (n < 0 || n > INT_MAX)
    DIE(EXIT_RUNTIME, "%s is %lld, more than an int holds", what, (long long)n);
  return (int)n;
}

static void refuse_wrong_launch(int size) {
  const char *variable, *rank;
  int promised = host_promised_tasks(&variable, &rank);
  if (promised == 0 || promised == size) return;
  if (!rank || !strcmp(rank, "0")) /* one line, however many copies there are */
    fprintf(
        stderr,
        "fascicle: %s says %d tasks, but MPI sees %d: the launcher started separate copies; use "
        "`srun --mpi=pmix` or the mpirun of the MPI that fascicle was built with\n",
        variable, promised, size);
  fflush(stderr);
  _exit(EXIT_DEVICE);
}

struct comm comm_start(int *argc, char ***argv) {
  int provided;
  CHECK_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided));
  fail_mpi_is_up(true);
  CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  struct comm world = {.mpi = MPI_COMM_WORLD};
  CHECK_MPI(MPI_Comm_rank(world.mpi, &world.rank));
  CHECK_MPI(MPI_Comm_size(world.mpi, &world.size));
  fail_identify(world.rank, world.size);
  refuse_wrong_launch(world.size);
  return world;
}

/* MPI_Finalize unloads MPI's plug-ins while a helper thread of theirs may still be on its last
 * instructions (seen as rare crashes at the end of a loaded machine's runs): code once loaded stays
 * mapped until the process is gone. */
static int keep_mapped(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  if (info->dlpi_name && *info->dlpi_name)
    dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  return 0;
}

_Noreturn void comm_finish(struct comm *world, int code) {
  dl_iterate_phdr(keep_mapped, NULL);
  fflush(stdout);
  fflush(stderr);
  comm_barrier(world);
  peers_leave();
  int rank = world->rank, size = world->size;
  fail_mpi_is_up(false);
  CHECK_MPI(MPI_Finalize());
  if (rank > 0) exit(EXIT_FINE);
  const struct timespec pause = {0, 200000000};
  if (size > 1) nanosleep(&pause, NULL);
  exit(code);
}

static struct comm group_of(MPI_Comm mpi) {
  struct comm part = {.mpi = mpi};
  CHECK_MPI(MPI_Comm_set_errhandler(mpi, MPI_ERRORS_RETURN));
  CHECK_MPI(MPI_Comm_rank(mpi, &part.rank));
  CHECK_MPI(MPI_Comm_size(mpi, &part.size));
  return part;
}

struct comm comm_split(const struct comm *comm, int colour, int key) {
  MPI_Comm mpi;
  CHECK_MPI(MPI_Comm_split(comm->mpi, colour, key, &mpi));
  return group_of(mpi);
}

struct comm comm_split_host(const struct comm *comm) {
  MPI_Comm mpi;
  CHECK_MPI(MPI_Comm_split_type(comm->mpi, MPI_COMM_TYPE_SHARED, comm->rank, MPI_INFO_NULL, &mpi));
  return group_of(mpi);
}

struct host *comm_hosts(const struct comm *comm) {
  const struct host mine = host_here();
  struct host *all = NEW(struct host, comm->size);
  comm_gather(comm, &mine, sizeof mine, all);
  return all;
}

void comm_library(char *text) {
  char full[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  CHECK_MPI(MPI_Get_library_version(full, &length));
  full[strcspn(full, ",\n")] = 0;
  snprintf(text, 256, "%s", full);
}

void comm_free(struct comm *comm) {
  if (comm->size && comm->mpi != MPI_COMM_WORLD) CHECK_MPI(MPI_Comm_free(&comm->mpi));
  *comm = (struct comm){0};
}

void comm_barrier(const struct comm *comm) {
  CHECK_MPI(MPI_Barrier(comm->mpi));
}

void comm_share(const struct comm *comm, void *data, int64_t bytes, int root) {
  ASSERT(bytes >= 0 && root >= 0 && root < comm->size);
  for (int64_t at = 0; at < bytes; at += CHUNK) {
    int n = (int)(bytes - at < CHUNK ? bytes - at : CHUNK);
    CHECK_MPI(MPI_Bcast((char *)data + at, n, MPI_BYTE, root, comm->mpi));
  }
}

void comm_send(const struct comm *comm, const void *data, int64_t bytes, int to) {
  ASSERT(bytes >= 0 && to >= 0 && to < comm->size && to != comm->rank);
  for (int64_t at = 0; at < bytes; at += CHUNK) {
    int n = (int)(bytes - at < CHUNK ? bytes - at : CHUNK);
    CHECK_MPI(MPI_Send((const char *)data + at, n, MPI_BYTE, to, 0, comm->mpi));
  }
}

void comm_receive(const struct comm *comm, void *data, int64_t bytes, int from) {
  ASSERT(bytes >= 0 && from >= 0 && from < comm->size && from != comm->rank);
  for (int64_t at = 0; at < bytes; at += CHUNK) {
    int n = (int)(bytes - at < CHUNK ? bytes - at : CHUNK);
    CHECK_MPI(MPI_Recv((char *)data + at, n, MPI_BYTE, from, 0, comm->mpi, MPI_STATUS_IGNORE));
  }
}

void comm_wait_for_all(const struct comm *comm) {
  const struct timespec nap = {0, 5000000};
  MPI_Request request;
  int done = 0;
  CHECK_MPI(MPI_Ibarrier(comm->mpi, &request));
  watchdog_wait();
  for (;;) {
    CHECK_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done) break;
    nanosleep(&nap, NULL);
  }
  watchdog_wait_over();
}

static void reduce_i64(const struct comm *comm, int64_t *x, int64_t n, MPI_Op op) {
  enum { STEP = 1 << 26 };
  for (int64_t at = 0; at < n; at += STEP) {
    int m = (int)(n - at < STEP ? n - at : STEP);
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, x + at, m, MPI_INT64_T, op, comm->mpi));
  }
}

void comm_sum_i64(const struct comm *comm, int64_t *x, int64_t n) {
  reduce_i64(comm, x, n, MPI_SUM);
}
void comm_min_i64(const struct comm *comm, int64_t *x, int64_t n) {
  reduce_i64(comm, x, n, MPI_MIN);
}
void comm_max_i64(const struct comm *comm, int64_t *x, int64_t n) {
  reduce_i64(comm, x, n, MPI_MAX);
}

void comm_sum_f64(const struct comm *comm, double *x, int64_t n) {
  if (comm->size == 1 || n == 0) return;
  double *all = NEW(double, n * comm->size);
  comm_gather(comm, x, n * (int64_t)sizeof *x, all);
  for (int64_t i = 0; i < n; i++) {
    double sum = 0;
    for (int r = 0; r < comm->size; r++) sum += all[r * n + i];
    x[i] = sum;
  }
  mem_free(all);
}

void comm_gather(const struct comm *comm, const void *mine, int64_t bytes, void *all) {
  int n = int_from(bytes, "the size of a gathered block");
  CHECK_MPI(MPI_Allgather(mine, n, MPI_BYTE, all, n, MPI_BYTE, comm->mpi));
}

static MPI_Datatype type_of(size_t element) {
  MPI_Datatype type;
  CHECK_MPI(MPI_Type_contiguous(int_from((int64_t)element, "an element's size"), MPI_BYTE, &type));
  CHECK_MPI(MPI_Type_commit(&type));
  return type;
}

/* MPI's int counts and offsets from 64-bit counts; returns the total. */
static int64_t offsets_of(int n, const int64_t *counts, int *count, int *offset) {
  int64_t total = 0;
  for (int r = 0; r < n; r++) {
    ASSERT(counts[r] >= 0);
    count[r] = int_from(counts[r], "a message's element count");
    offset[r] = int_from(total, "a message's element offset");
    total += counts[r];
  }
  return total;
}

void *comm_gather_varied(const struct comm *comm, const void *mine, int64_t n, size_t element,
                         int64_t *counts) {
  int64_t *all_n = NEW(int64_t, comm->size);
  int *count = NEW(int, comm->size), *offset = NEW(int, comm->size);
  comm_gather(comm, &n, sizeof n, all_n);
  int64_t total = offsets_of(comm->size, all_n, count, offset);
  void *all = mem_alloc(total, element);
  MPI_Datatype type = type_of(element);
  CHECK_MPI(MPI_Allgatherv(mine, (int)n, type, all, count, offset, type, comm->mpi));
  CHECK_MPI(MPI_Type_free(&type));
  if (counts) memcpy(counts, all_n, (size_t)comm->size * sizeof *counts);
  mem_free(all_n), mem_free(count), mem_free(offset);
  return all;
}

void *comm_swap_varied(const struct comm *comm, const void *send, const int64_t *send_n,
                       size_t element, int64_t *recv_n) {
  CHECK_MPI(MPI_Alltoall(send_n, 1, MPI_INT64_T, recv_n, 1, MPI_INT64_T, comm->mpi));
  int *sc = NEW(int, comm->size), *so = NEW(int, comm->size);
  int *rc = NEW(int, comm->size), *ro = NEW(int, comm->size);
  offsets_of(comm->size, send_n, sc, so);
  void *all = mem_alloc(offsets_of(comm->size, recv_n, rc, ro), element);
  MPI_Datatype type = type_of(element);
  CHECK_MPI(MPI_Alltoallv(send, sc, so, type, all, rc, ro, type, comm->mpi));
  CHECK_MPI(MPI_Type_free(&type));
  mem_free(sc), mem_free(so), mem_free(rc), mem_free(ro);
  return all;
}

bool comm_equal(const struct comm *comm, const void *data, int64_t bytes) {
  char *first = mem_alloc(bytes, 1);
  if (bytes) memcpy(first, data, (size_t)bytes);
  int64_t size = bytes;
  comm_share(comm, &size, sizeof size, 0);
  int64_t same = size == bytes;
  comm_min_i64(comm, &same, 1);
  if (same) {
    comm_share(comm, first, bytes, 0);
    same = bytes == 0 || memcmp(first, data, (size_t)bytes) == 0;
    comm_min_i64(comm, &same, 1);
  }
  mem_free(first);
  return same;
}
