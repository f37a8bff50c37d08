/* A barrier that threads reach every few hundred microseconds: a short spin, then sleep.
 * OpenMP's own spins for milliseconds, which is fine on cores that no other process uses; elsewhere
 * the thread that is awaited then waits for the core of the one that spins. */
#ifndef FASCICLE_RECUR_BARRIER_H
#define FASCICLE_RECUR_BARRIER_H

#include <pthread.h>
#include <stdatomic.h>

struct recur_barrier {
  atomic_int arrived;
  atomic_uint round;
  pthread_mutex_t lock;
  pthread_cond_t moved_on;
};

#define RECUR_BARRIER_INIT                                                                         \
  { .lock = PTHREAD_MUTEX_INITIALIZER, .moved_on = PTHREAD_COND_INITIALIZER }

static inline void recur_barrier_open(struct recur_barrier *b) {
  atomic_store(&b->arrived, 0);
  pthread_mutex_lock(&b->lock);
  atomic_fetch_add(&b->round, 1);
  pthread_cond_broadcast(&b->moved_on);
  pthread_mutex_unlock(&b->lock);
}

static inline void recur_barrier_sleep(struct recur_barrier *b, unsigned round) {
  pthread_mutex_lock(&b->lock);
  while (atomic_load(&b->round) == round) pthread_cond_wait(&b->moved_on, &b->lock);
  pthread_mutex_unlock(&b->lock);
}

/* Returns when all n threads have come. */
static inline void recur_barrier_wait(struct recur_barrier *b, int n) {
  enum { SPINS = 20000 }; /* some tens of microseconds */
  const unsigned round = atomic_load(&b->round);
  if (atomic_fetch_add(&b->arrived, 1) + 1 == n) {
    recur_barrier_open(b);
    return;
  }
  for (int i = 0; i < SPINS; i++)
    if (atomic_load_explicit(&b->round, memory_order_acquire) != round) return;
  recur_barrier_sleep(b, round);
}

#endif
