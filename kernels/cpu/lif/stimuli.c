/* When stimuli act on a block, and whom they make fire. */
#include "state.h"

static bool listed(const struct lif_stimulus *stimulus, int64_t step) {
  int64_t low = 0, high = stimulus->n_steps;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (stimulus->step[middle] < step)
      low = middle + 1;
    else
      high = middle;
  }
  return low < stimulus->n_steps && stimulus->step[low] == step;
}

static bool replayed(const struct lif_stimulus *stimulus, int64_t step) {
  const int64_t at = lif_first_replayed(stimulus, step, 0);
  return at < stimulus->n_steps && stimulus->replayed[at].step == step;
}

bool lif_stimulus_is_on(const struct lif_stimulus *stimulus, int64_t step) {
  if (step < stimulus->first_step || step > stimulus->last_step) return false;
  if (stimulus->kind == LIF_REPLAY) return replayed(stimulus, step);
  return stimulus->kind != LIF_SPIKES || listed(stimulus, step);
}

static bool forces(const struct lif_stimulus *stimulus) {
  return stimulus->kind == LIF_SPIKES || stimulus->kind == LIF_REPLAY;
}

/* A block's touches are sorted by first step, and those at the front whose time is over are passed
 * for good. */
int lif_stimuli_on(struct lif_engine *s, lidx block, int64_t step) {
  const int64_t end = s->touch_ptr[block + 1];
  int64_t *now = &s->touch_now[block];
  int on = 0;
  while (*now < end && s->stimulus[s->touch[*now].stimulus].last_step < step) ++*now;
  for (int64_t k = *now; k < end && s->stimulus[s->touch[k].stimulus].first_step <= step; k++) {
    const struct lif_stimulus *stimulus = &s->stimulus[s->touch[k].stimulus];
    if (lif_stimulus_is_on(stimulus, step)) on |= forces(stimulus) ? LIF_FORCES : LIF_ADDS;
  }
  return on;
}

/* A neuron, by its position in the block, unless it is listed or removed. */
static void add_forced(const struct lif_engine *s, struct lif_part *part, lidx row, lidx base,
                       uint64_t *seen, lidx *n) {
  const lidx at = row - base;
  const uint64_t bit = 1ull << (at % 64);
  if (seen[at / 64] & bit || (s->muted && s->mute[row] & LIF_REMOVED)) return;
  seen[at / 64] |= bit;
  part->forced[(*n)++] = (uint16_t)at;
}

static void add_replayed(const struct lif_engine *s, struct lif_part *part,
                         const struct lif_stimulus *stimulus, const struct lif_arrival *a,
                         uint64_t *seen, lidx *n) {
  const lidx base = a->block * LIF_BLOCK;
  for (int64_t at = lif_first_replayed(stimulus, a->step, base);
       at < stimulus->n_steps && stimulus->replayed[at].step == a->step &&
       stimulus->replayed[at].neuron < base + a->n;
       at++)
    add_forced(s, part, stimulus->replayed[at].neuron, base, seen, n);
}

lidx lif_find_forced(const struct lif_engine *s, struct lif_part *part,
                     const struct lif_arrival *a) {
  uint64_t seen[LIF_BLOCK / 64] = {0};
  lidx n = 0;
  for (int64_t k = s->touch_now[a->block]; k < s->touch_ptr[a->block + 1]; k++) {
    const struct lif_touch *touch = &s->touch[k];
    const struct lif_stimulus *stimulus = &s->stimulus[touch->stimulus];
    if (stimulus->first_step > a->step) break;
    if (stimulus->kind == LIF_REPLAY) add_replayed(s, part, stimulus, a, seen, &n);
    if (stimulus->kind != LIF_SPIKES || !lif_stimulus_is_on(stimulus, a->step)) continue;
    for (lidx i = touch->from; i < touch->to; i++)
      add_forced(s, part, stimulus->neuron[i], a->block * LIF_BLOCK, seen, &n);
  }
  return n;
}
