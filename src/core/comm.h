/* A group of ranks. A function that takes a `struct comm *` is collective over it; one that
 * does not, does not communicate. Counts are 64-bit; the conversion to MPI's int happens
 * here and is checked here. */
#ifndef FASCICLE_COMM_H
#define FASCICLE_COMM_H

#include "fail.h"
#include "host.h"
#include "types.h"

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

struct transport;

struct comm {
  MPI_Comm mpi;
  int rank, size;
  /* How rows and gradients travel, and the transport's own state: set by its `open`, NULL before
   * that and after its `close`. */
  const struct transport *via;
  void *via_state;
};

/* Start MPI, install our error handling, and refuse wrong launches: N copies of "rank 0 of 1" (the
 * launcher says N tasks, MPI says one) leave with EXIT_DEVICE and a line that names `srun
 * --mpi=pmix` and mpirun. */
struct comm comm_start(int *argc, char ***argv);

/* End the program with a code that is equal on every rank: all finalize, ranks above 0 leave with
 * 0, rank 0 leaves 0.2 s later with the code, so that a launcher reports just that code. */
__attribute__((noreturn)) void comm_finish(struct comm *world, int code);

/* Ranks of equal colour form a new group, ordered by key. Without a transport. */
struct comm comm_split(const struct comm *comm, int colour, int key);
/* The ranks that share this host's memory; rank 0 is the lowest of them. */
struct comm comm_split_host(const struct comm *comm);
void comm_free(struct comm *comm);

/* The hosts of all ranks, [size]; mem_free it. */
struct host *comm_hosts(const struct comm *comm);

/* Which MPI this is, such as "Open MPI v4.1.4"; `text` holds at least 256 bytes. */
void comm_library(char *text);

void comm_barrier(const struct comm *comm);

/* `bytes` bytes from `root` to all; any size. */
void comm_share(const struct comm *comm, void *data, int64_t bytes, int root);

/* From one rank to one other, any size; the receiver asks for as many bytes as are sent. */
void comm_send(const struct comm *comm, const void *data, int64_t bytes, int to);
void comm_receive(const struct comm *comm, void *data, int64_t bytes, int from);

/* A barrier for ranks that have nothing to do for long: they sleep, and leave
 * their cores to the others. */
void comm_wait_for_all(const struct comm *comm);

/* Element by element over ranks, in place; every rank gets the result. */
void comm_sum_i64(const struct comm *comm, int64_t *x, int64_t n);
void comm_min_i64(const struct comm *comm, int64_t *x, int64_t n);
void comm_max_i64(const struct comm *comm, int64_t *x, int64_t n);
/* Doubles are summed in rank order, so that the same grid gives the same bits. */
void comm_sum_f64(const struct comm *comm, double *x, int64_t n);

/* `all` [size * bytes] receives each rank's `bytes` bytes in rank order. */
void comm_gather(const struct comm *comm, const void *mine, int64_t bytes, void *all);

/* Each rank gives n elements of `element` bytes; returns all of them in rank order (mem_free it),
 * the counts in `counts` [size] unless NULL. */
void *comm_gather_varied(const struct comm *comm, const void *mine, int64_t n, size_t element,
                         int64_t *counts);

/* To rank r go the `send_n[r]` elements at send + offset r; returns what arrived, in rank order
 * (mem_free it), with the counts in recv_n [size]. */
void *comm_swap_varied(const struct comm *comm, const void *send, const int64_t *send_n,
                       size_t element, int64_t *recv_n);

/* True on all ranks when every rank has the same bytes. */
bool comm_equal(const struct comm *comm, const void *data, int64_t bytes);

/* A checked conversion for MPI and other int interfaces. */
int int_from(int64_t n, const char *what);

#ifdef __cplusplus
}
#endif
#endif
