/* ranks: 1 */
/* Work done ahead: every piece exactly once, and what it wrote is there for each thread that
 * reaches it, over many rounds of any length, for any helpers and threads, helpers asleep or late
 * or with work of any size; none keeps a program from ending. */
#include "kernels/cpu/lif/ahead.h"
#include "check.h"
#include "core/mem.h"
#include "core/rng.h"

enum { ROUNDS = 400, MOST = 300 };

struct fixture {
  int64_t round, n;
  int64_t made[MOST]; /* by the piece itself: the round */
  int64_t times[MOST];
  double burnt[MOST];
};

/* As long as it takes: now and then a hundred times the others. */
static void work(void *of, int64_t piece) {
  struct fixture *b = of;
  const struct rng_block r = rng_draw(2, (uint32_t)b->round, (uint32_t)piece, 0, 0);
  for (uint32_t i = 0; i < (r.v[0] % 32 ? r.v[1] % 64 : 6400); i++)
    b->burnt[piece] += 1.0 / (i + 1);
  b->made[piece] = b->round, b->times[piece]++;
}

/* Wrong pieces that one thread saw in its way through a round. */
static int64_t go_through(struct ahead *a, const struct fixture *b) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < b->n; i++) {
    ahead_reach(a, i);
    wrong += b->made[i] != b->round || b->times[i] != b->round || !ahead_is_done(a, i);
  }
  return wrong;
}

static void check_rounds(int n_helpers, int n_threads) {
  struct fixture *b = NEW_ZERO(struct fixture, 1);
  struct ahead *a = ahead_open(n_helpers, work, b);
  int64_t wrong = 0;
  for (int64_t k = 1; k <= ROUNDS; k++) {
    b->round = k,
    b->n = k % 7 ? 1 + (int64_t)(rng_draw(1, (uint32_t)k, 0, 0, 0).v[0] % MOST) : k % 2;
    for (int64_t i = b->n; i < MOST; i++) b->times[i]++; /* not in this round */
    ahead_begin(a, b->n);
#pragma omp parallel for schedule(static, 1) num_threads(n_threads) reduction(+ : wrong)
    for (int p = 0; p < n_threads; p++) wrong += go_through(a, b);
  }
  CHECK_EQ(wrong, 0);
  ahead_close(a);
  mem_free(b);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  for (int helpers = 0; helpers <= 3; helpers++)
    for (int threads = 1; threads <= 3; threads++) check_rounds(helpers, threads);
  for (int i = 0; i < 100; i++)
    ahead_close(ahead_open(i % 3, work, NULL)); /* before they have begun */
  ahead_close(NULL);
  return test_end();
}
