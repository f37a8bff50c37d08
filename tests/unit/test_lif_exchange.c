/* ranks: 1 2 4 */
/* What ranks tell each other between batches: the strongest request and the smallest fault
 * reach everybody, alone and beside spikes; spikes arrive whole and in rank order,
 * travelling as lists or as masks. */
#include "kernels/interface/backends.h"
#include "check.h"
#include "lif/exchange.h"
#include "core/mem.h"

enum { OWN = 100, STEPS = 3 };

static gidx first[64];

static void test_agree(struct lif_exchange *x) {
  struct lif_fault none = {.step = INT64_MAX};
  int request = world.rank == world.size - 1 ? 2 : world.rank % 2;
  lif_exchange_agree(x, &world, &request, &none);
  CHECK_EQ(request, 2);
  CHECK_EQ(none.step, INT64_MAX);
  struct lif_fault fault = {
      .step = 50 + (world.rank + 1) % world.size, .phase = 1, .node = 7, .value = world.rank};
  request = 0;
  lif_exchange_agree(x, &world, &request, &fault);
  CHECK_EQ(request, 0);
  CHECK_EQ(fault.step, 50);
  CHECK_EQ(fault.value, world.size - 1);
}

/* Rank r's neuron i fires at step k when i % every == (r + k) % every: few
 * make a list, many a mask. */
static void test_spikes(struct lif_exchange *x, int every) {
  uint32_t row[STEPS * OWN];
  int64_t step_ptr[STEPS + 1];
  struct lif_spikes mine = {.row = row, .n_steps = STEPS, .step_ptr = step_ptr}, all;
  for (int k = 0; k < STEPS; k++) {
    step_ptr[k] = mine.n;
    for (int i = 0; i < OWN; i++)
      if (i % every == (world.rank + k) % every) row[mine.n++] = (uint32_t)(first[world.rank] + i);
  }
  step_ptr[STEPS] = mine.n;
  struct lif_fault fault = {.step = INT64_MAX};
  int request = world.rank == 0;
  lif_exchange_spikes(x, &world, &mine, &request, &fault, &all);
  CHECK_EQ(request, 1);
  int64_t at = 0;
  for (int k = 0; k < STEPS; k++) {
    CHECK_EQ(all.step_ptr[k], at);
    for (int r = 0; r < world.size; r++)
      for (int i = 0; i < OWN; i++)
        if (i % every == (r + k) % every) CHECK_EQ(all.row[at++], first[r] + i);
  }
  CHECK_EQ(all.n, at);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  CHECK_FINE(transport_mpi.open(&world));
  for (int r = 0; r <= world.size; r++) first[r] = (gidx)r * OWN;
  struct lif_exchange *x = lif_exchange_open(&world, first, STEPS);
  test_agree(x);
  test_spikes(x, 1), test_spikes(x, 2), test_spikes(x, 50);
  lif_exchange_close(x);
  world.via->close(&world);
  return test_end();
}
