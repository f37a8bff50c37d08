/* Keeps two flags of the ranks of a host: who says why the job ends, and who leaves in order. */
#include "peers.h"

#include <stdatomic.h>

static int *own_leaves, *host_spoken;
static atomic_bool met;

void peers_share(int *leaves, int *spoken) {
  own_leaves = leaves, host_spoken = spoken;
  atomic_store(&met, true);
}

bool peers_met(void) {
  return atomic_load(&met);
}

void peers_leave(void) {
  if (peers_met() && own_leaves) __atomic_store_n(own_leaves, 1, __ATOMIC_SEQ_CST);
}

bool peers_speak(void) {
  if (!peers_met() || !host_spoken) return true;
  return !__atomic_exchange_n(host_spoken, 1, __ATOMIC_SEQ_CST);
}

bool peers_told(void) {
  return peers_met() && host_spoken && __atomic_load_n(host_spoken, __ATOMIC_SEQ_CST);
}
