/* The least that a unit test needs. A failed check names itself and ends the whole job. Each test's
 * main calls test_start, its cases, and returns test_end, which fails when no check ran. */
#ifndef FASCICLE_CHECK_H
#define FASCICLE_CHECK_H

#include "core/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long checks_run;
static struct comm world;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    checks_run++;                                                                                  \
    if (!(condition)) DIE(1, "check failed: %s", #condition);                                      \
  } while (0)

#define CHECK_EQ(a, b)                                                                             \
  do {                                                                                             \
    const long long check_a_ = (long long)(a), check_b_ = (long long)(b);                          \
    checks_run++;                                                                                  \
    if (check_a_ != check_b_) DIE(1, "%s is %lld, %s is %lld", #a, check_a_, #b, check_b_);        \
  } while (0)

#define CHECK_TEXT(a, b)                                                                           \
  do {                                                                                             \
    checks_run++;                                                                                  \
    if (strcmp(a, b)) DIE(1, "%s is '%s', not '%s'", #a, a, b);                                    \
  } while (0)

#define CHECK_FINE(expression)                                                                     \
  do {                                                                                             \
    const struct status check_status_ = (expression);                                              \
    checks_run++;                                                                                  \
    if (check_status_.code) DIE(1, "%s: %s", #expression, check_status_.text);                     \
  } while (0)

static inline void test_start(int *argc, char ***argv) {
  world = comm_start(argc, argv);
}

static inline int test_end(void) {
  if (checks_run == 0) DIE(1, "the test ran no check");
  comm_barrier(&world);
  if (world.rank == 0) printf("%ld checks on rank 0 of %d\n", checks_run, world.size);
  MPI_Finalize();
  return 0;
}

#endif
