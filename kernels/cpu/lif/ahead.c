/* Does tasks ahead of the threads that need them, with helper threads. */
#include "ahead.h"
#include "core/mem.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum {
  SPINS = 5000
}; /* looks at what another thread is about to finish, before sleeping: some microseconds */

/* Tasks are numbered through all rounds: `next` and `end` only grow, so that a thread that
 * is late for one round takes no task of the next. */
struct ahead {
  void (*work)(void *of, int64_t task);
  void *of;
  int64_t first, room;
  atomic_bool *done; /* [room] of this round's tasks */
  atomic_llong next; /* the first that nobody has taken */
  atomic_llong end;  /* of this round */
  atomic_int waiting;
  bool over;
  pthread_mutex_t lock;
  pthread_cond_t begun, came; /* a round; a task */
  int n_helpers;
  pthread_t *helper;
};

/* ---- who does what ---- */

static void finish(struct ahead *a, int64_t task) {
  a->work(a->of, task);
  atomic_store(&a->done[task], true);
  if (!atomic_load(&a->waiting)) return;
  pthread_mutex_lock(&a->lock);
  pthread_cond_broadcast(&a->came);
  pthread_mutex_unlock(&a->lock);
}

/* Does one that nobody has taken. False: there is none. */
static bool do_one(struct ahead *a) {
  long long task = atomic_load(&a->next);
  do
    if (task >= atomic_load(&a->end)) return false;
  while (!atomic_compare_exchange_weak(&a->next, &task, task + 1));
  finish(a, task - a->first);
  return true;
}

static void wait_for(struct ahead *a, int64_t task) {
  for (int i = 0; i < SPINS; i++)
    if (ahead_is_done(a, task)) return;
  pthread_mutex_lock(&a->lock);
  atomic_fetch_add(&a->waiting, 1);
  while (!atomic_load(&a->done[task])) pthread_cond_wait(&a->came, &a->lock);
  atomic_fetch_sub(&a->waiting, 1);
  pthread_mutex_unlock(&a->lock);
}

bool ahead_is_done(const struct ahead *a, int64_t task) {
  return atomic_load_explicit(&a->done[task], memory_order_acquire);
}

void ahead_reach(struct ahead *a, int64_t task) {
  while (!ahead_is_done(a, task))
    if (!do_one(a)) wait_for(a, task);
}

void ahead_begin(struct ahead *a, int64_t n) {
  if (n > a->room) {
    mem_free(a->done);
    a->room = n + n / 2, a->done = NEW(atomic_bool, a->room);
  }
  for (int64_t i = 0; i < n; i++) atomic_init(&a->done[i], false);
  a->first = atomic_load(&a->end);
  pthread_mutex_lock(&a->lock);
  atomic_fetch_add(&a->end, n);
  if (n > 1)
    pthread_cond_broadcast(&a->begun); /* one alone is done sooner than a helper wakes up */
  pthread_mutex_unlock(&a->lock);
}

/* ---- helpers ---- */

static bool wait_for_round(struct ahead *a) {
  pthread_mutex_lock(&a->lock);
  while (!a->over && atomic_load(&a->next) >= atomic_load(&a->end))
    pthread_cond_wait(&a->begun, &a->lock);
  const bool over = a->over;
  pthread_mutex_unlock(&a->lock);
  return !over;
}

static void *help(void *ahead) {
  while (wait_for_round(ahead))
    while (do_one(ahead)) continue;
  return NULL;
}

static void start_helpers(struct ahead *a) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int n = 0;
  while (n < a->n_helpers && !pthread_create(&a->helper[n], NULL, help, a)) n++;
  a->n_helpers = n; /* where the system gives no more threads, those who need the work do it */
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct ahead *ahead_open(int n_helpers, void (*work)(void *of, int64_t task), void *of) {
  struct ahead *a = NEW_ZERO(struct ahead, 1);
  a->work = work, a->of = of;
  a->n_helpers = n_helpers, a->helper = NEW_ZERO(pthread_t, n_helpers);
  pthread_mutex_init(&a->lock, NULL);
  pthread_cond_init(&a->begun, NULL), pthread_cond_init(&a->came, NULL);
  start_helpers(a);
  return a;
}

void ahead_close(struct ahead *a) {
  if (!a) return;
  pthread_mutex_lock(&a->lock);
  a->over = true;
  pthread_cond_broadcast(&a->begun);
  pthread_mutex_unlock(&a->lock);
  for (int i = 0; i < a->n_helpers; i++) pthread_join(a->helper[i], NULL);
  pthread_mutex_destroy(&a->lock);
  pthread_cond_destroy(&a->begun), pthread_cond_destroy(&a->came);
  mem_free(a->done), mem_free(a->helper), mem_free(a);
}
