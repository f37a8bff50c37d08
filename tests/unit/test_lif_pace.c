/* ranks: 1 */
/* The pace of joined devices (contract/lif_pace.h) under an unfair scheduler: which
 * block goes on next is drawn, some blocks and ranks far more often than others. Each message
 * carries its step's number. */
#include "check.h"
#include "contract/lif_pace.h"
#include "core/rng.h"

enum { RANKS = 3, WORDS = 4, MOST_BLOCKS = 4, STEPS = 300, MOST_WINDOW = 64 };

/* What a block does next, in this order in each step. */
enum action { TAKE, SEND, RECEIVE_LATE, RECEIVE_NOW, SYNCHRONISE, WAIT };

struct block {
  int step;
  enum action next;
  int sent,
      received; /* own spikes of steps <= sent are on their way, messages of steps <= received */
};

struct rank_state {
  int n_blocks, arrived, round; /* of the barrier */
  struct block block[MOST_BLOCKS];
  int round_of[MOST_BLOCKS];
  int inbox[RANKS][WORDS][MOST_WINDOW]; /* the step whose message is there, or -1 */
};

struct play {
  int min_delay, max_delay, window, period;
  bool late;
  int launch; /* steps of a launch */
  struct rank_state rank[RANKS];
};

static bool last_of_launch(const struct play *p, int step) {
  return (step + 1) % p->launch == 0 || step + 1 == STEPS;
}

/* Barriers stand at the same steps of every rank: counted from the launch's first. */
static bool synchronises(const struct play *p, int step) {
  return last_of_launch(p, step) || (step % p->launch + 1) % p->period == 0;
}

/* Everything due at `step` has been sent by all blocks. */
static void check_take(const struct play *p, const struct rank_state *r, int step) {
  for (int b = 0; b < r->n_blocks; b++)
    if (r->block[b].sent < step - p->min_delay || r->block[b].received < step - p->min_delay)
      DIE(1, "step %d is made before block %d has sent what is due", step, b);
}

/* Sums for `step` + the longest delay go to a slot whose old sums all blocks have taken. */
static void check_send(const struct play *p, const struct rank_state *r, int step) {
  const int due = step + p->max_delay - lif_pace_slots(p->min_delay, p->max_delay);
  for (int b = 0; b < r->n_blocks; b++) {
    const struct block *o = &r->block[b];
    const int taken = o->next == TAKE ? o->step - 1 : o->step;
    if (taken < due)
      DIE(1, "a spike of step %d overwrites sums that block %d has not taken", step, b);
  }
}

static void send_step(struct play *p, int from, int b) {
  const struct block *o = &p->rank[from].block[b];
  for (int w = b; w < WORDS; w += p->rank[from].n_blocks)
    for (int to = 0; to < RANKS; to++) {
      if (to == from) continue;
      struct rank_state *r = &p->rank[to];
      int *place = &r->inbox[from][w][o->step % p->window];
      if (*place >= 0 && r->block[w % r->n_blocks].received < *place)
        DIE(1, "the message of step %d overwrites that of step %d, which has not been received",
            o->step, *place);
      *place = o->step;
    }
}

/* Whether all messages of `step` that block b receives are there. */
static bool has_come(const struct play *p, int rank, int b, int step) {
  const struct rank_state *r = &p->rank[rank];
  for (int from = 0; from < RANKS; from++)
    for (int w = b; w < WORDS && from != rank; w += r->n_blocks)
      if (r->inbox[from][w][step % p->window] != step) return false;
  return true;
}

static bool receive_step(struct play *p, int rank, int b, int step) {
  struct block *o = &p->rank[rank].block[b];
  if (!has_come(p, rank, b, step)) return false;
  check_send(p, &p->rank[rank], step);
  o->received = step;
  return true;
}

static void end_step(struct block *o) {
  o->step++, o->next = TAKE;
}

/* One action; false: it must wait. */
static bool act(struct play *p, int rank, int b) {
  struct rank_state *r = &p->rank[rank];
  struct block *o = &r->block[b];
  const bool first = o->step % p->launch == 0;
  switch (o->next) {
  case TAKE: check_take(p, r, o->step), o->next = SEND; return true;
  case SEND:
    send_step(p, rank, b), check_send(p, r, o->step), o->sent = o->step, o->next = RECEIVE_LATE;
    return true;
  case RECEIVE_LATE:
    if (p->late && !first && !receive_step(p, rank, b, o->step - 1)) return false;
    o->next = RECEIVE_NOW;
    return true;
  case RECEIVE_NOW:
    if ((!p->late || last_of_launch(p, o->step)) && !receive_step(p, rank, b, o->step))
      return false;
    o->next = SYNCHRONISE;
    return true;
  case SYNCHRONISE:
    if (!synchronises(p, o->step)) return end_step(o), true;
    r->round_of[b] = r->round, o->next = WAIT;
    if (++r->arrived == r->n_blocks) r->arrived = 0, r->round++;
    return true;
  default:
    if (r->round_of[b] == r->round) return false;
    return end_step(o), true;
  }
}

/* Ranks and blocks of low numbers go on far more often, and who that is changes. */
static void play(struct play *p, uint32_t seed) {
  int left = 0;
  for (int r = 0; r < RANKS; r++) {
    p->rank[r].n_blocks = 1 + (int)((seed + (uint32_t)r) % MOST_BLOCKS),
    left += p->rank[r].n_blocks;
    for (int b = 0; b < MOST_BLOCKS; b++)
      p->rank[r].block[b] = (struct block){.sent = -1, .received = -1};
    memset(p->rank[r].inbox, 0xff, sizeof p->rank[r].inbox);
  }
  int64_t idle = 0;
  for (uint32_t turn = 0; left > 0; turn++) {
    const struct rng_block draw = rng_draw(seed, turn, 0, 0, 0);
    const int favourite = (int)(turn / 997 % RANKS);
    const int r = draw.v[0] % 8 ? favourite : (int)(draw.v[1] % RANKS);
    const int b = draw.v[2] % 4 ? 0 : (int)(draw.v[3] % (uint32_t)p->rank[r].n_blocks);
    struct block *o = &p->rank[r].block[b];
    if (o->step == STEPS || !act(p, r, b)) {
      CHECK(idle++ < 1000000); /* else: nobody can go on */
      continue;
    }
    idle = 0, left -= o->step == STEPS && o->next == TAKE;
  }
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  static struct play p;
  static const int launch[] = {1, 7, 64};
  for (int min_delay = 1; min_delay <= 9; min_delay++)
    for (uint32_t seed = 0; seed < 6; seed++) {
      p = (struct play){.min_delay = min_delay,
                        .max_delay = min_delay + (int)(seed % 4),
                        .window = lif_pace_window(min_delay),
                        .period = lif_pace_period(min_delay),
                        .late = lif_pace_late(min_delay),
                        .launch = launch[seed % 3]};
      play(&p, seed);
    }
  return test_end();
}
