/* The ranks of one host watch each other's processes through a shared table and pidfds. */
#include "monitor.h"
#include "mem.h"
#include "peers.h"
#include "pulse.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Shared by the ranks of the host. */
struct peer {
  int rank; /* in the world */
  pid_t process;
  int leaves;          /* its end has been, or will be, explained (peers.h) */
  int spoken;          /* of the first one: somebody says why the job ends (peers.h) */
  atomic_int told;     /* somebody says that it is gone */
  _Atomic float still; /* by monitor_report */
  char place[48];
};

static struct peer *peers; /* [n_peers] */
static int n_peers, own;
static bool sees_all; /* the whole job is on this host */
static struct pollfd
    *seen; /* [n_peers] readable once the process has ended; fd -1: not watched any more */

static bool leaves(int i) {
  return __atomic_load_n(&peers[i].leaves, __ATOMIC_SEQ_CST);
}

/* ---- the table ---- */

static struct peer *map_table(const char *name, int flags, size_t bytes) {
  const int file = shm_open(name, flags, 0600);
  if (file < 0) return NULL;
  void *at = MAP_FAILED;
  if (!(flags & O_CREAT) || ftruncate(file, (off_t)bytes) == 0)
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return at == MAP_FAILED ? NULL : at;
}

/* The same table for all; its name is gone before anything can go wrong. */
static struct peer *share_table(const struct comm *host) {
  const size_t bytes = (size_t)host->size * sizeof(struct peer);
  char name[64] = "";
  struct peer *table = NULL;
  if (host->rank == 0) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, sizeof name, "/fascicle-%ld-%ld%09ld", (long)getpid(), (long)now.tv_sec,
             now.tv_nsec);
    table = map_table(name, O_CREAT | O_EXCL | O_RDWR, bytes);
  }
  comm_share(host, name, sizeof name, 0);
  if (host->rank > 0) table = map_table(name, O_RDWR, bytes);
  int64_t good = table != NULL;
  comm_min_i64(host, &good, 1);
  if (host->rank == 0) shm_unlink(name);
  if (!good && table) munmap(table, bytes);
  return good ? table : NULL;
}

/* ---- watching ---- */

/* A rank that has given the reason is left out; one that is being ended with all others says
 * nothing more. */
static void look_at(int i) {
  const struct timespec moment = {0, 100000000}, rest = {5, 0};
  if (leaves(i)) {
    seen[i].fd = -1;
    return;
  }
  nanosleep(&moment, NULL);
  if (leaves(own)) return;
  if (atomic_exchange(&peers[i].told, 1))
    nanosleep(&rest, NULL); /* the speaker ends us before that */
  DIE(EXIT_RUNTIME,
      "rank %d (process %ld) on this host is gone: killed, or crashed; seen during '%s'",
      peers[i].rank, (long)peers[i].process, watchdog_place());
}

static void *watch(void *unused) {
  (void)unused;
  for (;;) {
    if (poll(seen, (nfds_t)n_peers, -1) <= 0) continue;
    for (int i = 0; i < n_peers; i++)
      if (seen[i].fd >= 0 && seen[i].revents) look_at(i);
  }
  return NULL;
}

static int follow(pid_t process) {
  enum {
    PIDFD_OPEN = 434
  }; /* on every architecture; older systems refuse it: nobody is watched then */
  return (int)syscall(PIDFD_OPEN, process, 0);
}

/* Signals are for the other threads. */
static void start_thread(void) {
  sigset_t all, before;
  pthread_t thread;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread, NULL, watch, NULL))
    DIE(EXIT_RUNTIME, "cannot start the monitor thread");
  pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void watch_peers(const struct comm *host, int n_ranks) {
  peers = share_table(host);
  if (!peers) return;
  sees_all = host->size == n_ranks;
  n_peers = host->size, own = host->rank;
  peers[own].rank = fail_rank(), peers[own].process = getpid();
  comm_barrier(host);
  seen = NEW(struct pollfd, n_peers);
  for (int i = 0; i < n_peers; i++)
    seen[i] = (struct pollfd){.fd = i == own ? -1 : follow(peers[i].process), .events = POLLIN};
  comm_barrier(host); /* nobody is gone before all watch */
  start_thread();
}

void monitor_start(const struct comm *host, int n_ranks) {
  sees_all = n_ranks == 1;
  if (host->size > 1 && !peers) watch_peers(host, n_ranks);
  peers_share(peers ? &peers[own].leaves : NULL, peers ? &peers[0].spoken : NULL);
}

/* ---- when nothing moves ---- */

void monitor_report(double still, const char *place) {
  if (!peers) return;
  snprintf(peers[own].place, sizeof peers[own].place, "%s", place);
  atomic_store(&peers[own].still, (float)still);
}

bool monitor_sees_all(void) {
  return sees_all;
}

bool monitor_all_still(void) {
  for (int i = 0; i < n_peers; i++)
    if (leaves(i) || (i != own && atomic_load(&peers[i].still) < 1)) return false;
  return true;
}

/* 'T': stopped; 't': by a debugger; 0: gone. The state stands behind the name, which may hold
 * anything but is in brackets. */
static char state_of(pid_t process) {
  char path[64], line[512] = "";
  snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  const size_t n = fread(line, 1, sizeof line - 1, file);
  fclose(file);
  line[n] = 0;
  const char *end = strrchr(line, ')');
  return end && end[1] == ' ' ? end[2] : 0;
}

/* The first other rank that is in one of these states, -1: none. */
static int find_state(const char *states) {
  for (int i = 0; i < n_peers; i++) {
    const char state = i == own ? 0 : state_of(peers[i].process);
    if (state && strchr(states, state)) return i;
  }
  return -1;
}

bool monitor_stopped(void) {
  return find_state("T") >= 0;
}

/* The first other rank that is elsewhere, -1: none. */
static int find_elsewhere(const char *place) {
  for (int i = 0; i < n_peers; i++)
    if (i != own && strncmp(peers[i].place, place, sizeof peers[i].place - 1)) return i;
  return -1;
}

void monitor_suspect(char *text, size_t size) {
  *text = 0;
  const int stopped = find_state("Tt"),
            i = stopped >= 0 ? stopped : find_elsewhere(watchdog_place());
  if (i < 0) return;
  const struct peer *p = &peers[i];
  if (stopped >= 0)
    snprintf(text, size, "; rank %d (process %ld) on this host is stopped", p->rank,
             (long)p->process);
  else
    snprintf(text, size, "; rank %d (process %ld) on this host was last seen in '%.47s'", p->rank,
             (long)p->process, p->place);
}
