/* LIF on one of several devices; kernels/cuda/lif/kernels.cu has the same steps for one alone.
 *
 * A block also receives its share of the other ranks' words, assigned round-robin as own words are,
 * and sends the spikes along their edges into own rows. What is received of step t may be sent one
 * step late, together with own spikes of step t + 1, when the words have long come: with
 * barriers every min_delay - 1 steps, one still lies between that and step t + min_delay, the
 * first that it can matter to. Where min_delay is 1, words are waited for in their own step. A
 * rank can be so far ahead of another, and no further, that it overwrites no word that the
 * other has not received: inboxes of 2 min_delay steps suffice, since every rank receives every
 * other, also one without neurons. */
#include "launch.cuh"
#include "link.h"

using namespace lif;

namespace {

/* Words are assigned round-robin, PASS neighbouring ones at a time: they are sent in one store,
 * while small nets alone fare better with words apart (kernels/cuda/lif/kernels.cu). */
__device__ __forceinline__ int words_a_turn() {
  return gridDim.x * WARPS * PASS;
}

__device__ __forceinline__ int first_word() {
  return ((threadIdx.x / WARP) * gridDim.x + blockIdx.x) * PASS;
}

/* Spikes that a warp lists at most: its own neurons' and as many received ones. */
constexpr int ROOM = 2 * OWN;

constexpr int OUTBOXES = 16; /* at hand */

/* What stays as it is during a launch, behind the block's lists in shared
 * memory: registers are few. */
struct launch_facts {
  int64_t t0;                          /* the launch's first step ... */
  int first;                           /* ... and its place in the launch */
  uint32_t *mask;                      /* where the launch's masks go */
  uint64_t *outbox[OUTBOXES];          /* the first of them */
  const uint64_t *inbox[PASS * WARPS]; /* of a first pass */
  int64_t span_first[PASS * THREADS];  /* of the rows whose words a launch receives, where they are
                                          few  enough */
  int32_t span_n[PASS * THREADS];
};

constexpr size_t bytes_of(int lists) {
  return shared_bytes(ROOM, lists) + sizeof(launch_facts);
}

/* Step k of a launch: where its arrivals go in the ring, where its words stand in a box. */
struct step_place {
  int k, slot, box;
};

__device__ __forceinline__ step_place after(const lif_device &d, const lif_link &link,
                                            const step_place &m) {
  return step_place{m.k + 1, m.slot + 1 == d.slots ? 0 : m.slot + 1,
                    m.box + 1 == link.window ? 0 : m.box + 1};
}

/* Where words stand, and the tag that they carry. */
struct message {
  int box;
  uint32_t tag;
};

__device__ __forceinline__ message message_of(const lif_stretch &stretch, const step_place &m) {
  return message{m.box, ((uint32_t)stretch.q + (uint32_t)m.k + 1) << 1};
}

__device__ __forceinline__ message message_before(const lif_link &link, const lif_stretch &stretch,
                                                  const step_place &m) {
  return message{m.box == 0 ? link.window - 1 : m.box - 1, ((uint32_t)stretch.q + (uint32_t)m.k)
                                                               << 1};
}

__device__ __forceinline__ uint64_t load(const uint64_t *at) {
  uint64_t word;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
  return word;
}

__device__ __forceinline__ void store(uint64_t *at, uint64_t word) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(word) : "memory");
}

/* ---- telling ---- */

/* The warp's PASS words of a step to all outboxes, side by side; `loud`: of the
 * word of this lane % PASS. */
__device__ __forceinline__ void send_words(const lif_link &link, const launch_facts &c,
                                           const message &now, int first, uint32_t loud,
                                           bool faulty) {
  const int lane = threadIdx.x % WARP, word = first + lane % PASS;
  const uint64_t value = (uint64_t)(now.tag | faulty) << 32 | loud;
  const int64_t at = (int64_t)now.box * link.stride + word;
  if (word >= link.n_words_sent) return;
  for (int o = lane / PASS; o < link.n_outboxes; o += WARP / PASS)
    store((o < OUTBOXES ? c.outbox[o] : link.outbox[o]) + at, value);
}

/* ---- hearing ---- */

/* Lane u < PASS receives the warp's u-th word of a pass. */
struct inbox_word {
  const uint64_t *at; /* in box 0; NULL: no such word */
  int64_t row;        /* of its first neuron */
};

__device__ __forceinline__ inbox_word word_at(const lif_link &link, int item) {
  int from = item / link.stride;
  const int word = item - from * link.stride;
  from += from >= link.rank;
  if (from >= link.size) return inbox_word{nullptr, 0};
  const int64_t row = link.row[from] + (int64_t)word * WARP;
  if (word > 0 && row >= link.row[from + 1]) return inbox_word{nullptr, 0};
  return inbox_word{link.inbox + (int64_t)from * link.window * link.stride + word, row};
}

__device__ __forceinline__ inbox_word inbox_of(const lif_link &link, int pass) {
  const int u = threadIdx.x % WARP;
  if (u >= PASS) return inbox_word{nullptr, 0};
  return word_at(link, pass * words_a_turn() + first_word() + u);
}

/* The rows of a first pass, whose spans stay at hand. */
__device__ __forceinline__ void look_up_rows(const lif_device &d, const lif_link &link,
                                             launch_facts &c, const inbox_word &e) {
#pragma unroll
  for (int u = 0; u < PASS; u++) {
    const bool received = __shfl_sync(ALL, e.at != nullptr, u);
    const int64_t row = __shfl_sync(ALL, e.row, u) + threadIdx.x % WARP;
    const span x = span_of(d, row, received && row < link.row[link.size]);
    c.span_first[u * THREADS + threadIdx.x] = x.first, c.span_n[u * THREADS + threadIdx.x] = x.n;
  }
}

/* The word of a step as it stands now, which may not have come yet. */
__device__ __forceinline__ uint64_t listen(const lif_link &link, const uint64_t *at,
                                           const message &then) {
  return at ? load(at + (int64_t)then.box * link.stride) : 0;
}

__device__ __forceinline__ const uint64_t *near_inbox(const launch_facts &c) {
  const int lane = threadIdx.x % WARP;
  return lane < PASS ? c.inbox[threadIdx.x / WARP * PASS + lane] : nullptr;
}

/* Lists the spikes of the words of a step, and waits for those that have not come; `late`: they are
 * sent in the step after it. Rows from e.row on, or at hand (NEAR). */
template <bool NEAR>
__device__ __forceinline__ void receive(const lif_device &d, const lif_link &link, shared &s,
                                        queue &q, const launch_facts &c, const inbox_word &e,
                                        uint64_t word, const message &then, bool late) {
  const int lane = threadIdx.x % WARP;
  while (link.direct && e.at && (word >> 32 & ~1u) != then.tag) word = listen(link, e.at, then);
  if (word >> 32 & 1) s.faulty = 1;
#pragma unroll
  for (int u = 0; u < PASS; u++) {
    const int at = u * THREADS + threadIdx.x;
    const bool sends = (__shfl_sync(ALL, (uint32_t)word, u) >> lane & 1) != 0;
    const int64_t row = NEAR ? 0 : __shfl_sync(ALL, e.row, u) + lane;
    const span x = NEAR ? span{c.span_first[at], c.span_n[at]} : span_of(d, row, sends);
    enlist<false, ROOM>(d, s, q, sender{row, 0, sends, late}, x);
  }
}

/* The same for a pass of them; NEAR and `late`: they have been asked for. */
template <bool NEAR>
__device__ __forceinline__ void receive_pass(const lif_device &d, const lif_link &link, shared &s,
                                             queue &q, const launch_facts &c, const message &then,
                                             bool late, int pass, uint64_t asked) {
  const inbox_word e = NEAR ? inbox_word{near_inbox(c), 0} : inbox_of(link, pass);
  const uint64_t word = NEAR && late ? asked : listen(link, e.at, then);
  receive<NEAR>(d, link, s, q, c, e, word, then, late);
}

/* ---- steps ---- */

__device__ __forceinline__ void take_own(const lif_device &d, shared &s, int64_t t0,
                                         neuron (&own)[PASS], due_stimuli *kept) {
#pragma unroll
  for (int u = 0; u < PASS; u++) {
    const place p((first_word() + u) * WARP + threadIdx.x % WARP);
    keep(d, s, p, u, t0, own[u], kept[u * THREADS + threadIdx.x]);
  }
}

/* What stays as it is. */
__device__ __forceinline__ void set_course(const lif_link &link, const lif_stretch &stretch,
                                           uint32_t *mask, launch_facts &c) {
  /* Plain numbers: nvcc 13.0 loses the first of these sums when they are members of a struct. */
  int64_t t0 = stretch.step, first = stretch.first;
  if (link.clock) t0 += link.clock->step, first += link.clock->first, mask = link.clock->mask;
  if (threadIdx.x == 0) c.t0 = t0, c.first = (int)first, c.mask = mask;
  if (threadIdx.x < OUTBOXES && threadIdx.x < link.n_outboxes)
    c.outbox[threadIdx.x] = link.outbox[threadIdx.x];
}

/* A pass of the block's own neurons makes a step: their words are sent, their spikes listed. */
template <class SUM, bool RESIDENT>
__device__ __forceinline__ void
step_own(const lif_device &d, const lif_link &link, const lif_stretch &stretch, shared &s,
         const launch_facts &c, queue &q, const step_place &now, int pass, neuron (&own)[PASS],
         due_stimuli *kept, fault &f) {
  const int lane = threadIdx.x % WARP;
  const int first = first_word() + pass * words_a_turn();
  SUM *sums = (SUM *)d.ring + (int64_t)now.slot * d.width, due[PASS];
#pragma unroll
  for (int u = 0; u < PASS; u++) due[u] = due_at(d, place((first + u) * WARP + lane), sums);
  uint32_t loud = 0, fired = 0; /* this lane % PASS's word */
  bool faulty = false;
#pragma unroll
  for (int u = 0; u < PASS; u++) {
    const place p((first + u) * WARP + lane);
    const int at = u * THREADS + threadIdx.x;
    due_stimuli passing;
    if (!RESIDENT) {
      own[u] = take(d, p, c.t0, passing);
      prepare(d, p, c.t0, now.k, own[u], passing);
    }
    const bool fires = p.i < d.n && step_neuron(d, p, c.first + now.k, sums, due[u], own[u],
                                                RESIDENT ? kept[at] : passing, f, faulty);
    const bool sends = fires && !(own[u].state & MUTED);
    const unsigned loud_here = __ballot_sync(ALL, sends), fired_here = __ballot_sync(ALL, fires);
    if (lane % PASS == u) loud = loud_here, fired = fired_here;
    const span e = RESIDENT ? span{s.own_first[at], s.own_n[at]} : span_of(d, d.first + p.i, sends);
    enlist<false, ROOM>(d, s, q, sender{d.first + p.i, 0, sends}, e);
    if (!RESIDENT) put(d, p, own[u], passing);
  }
  faulty = __any_sync(ALL, faulty);
  if (faulty) s.faulty = 1;
  send_words(link, c, message_of(stretch, now), first, loud, faulty);
  if (lane < PASS && first + lane < d.n_words)
    c.mask[(c.first + now.k) * d.n_words + first + lane] = fired;
}

/* Others may receive only in the step after a barrier that a step before it was faulty, and so go
 * on to their next barrier: up to there they find our words, of no spikes. */
__device__ __forceinline__ void tell_the_end(const lif_device &d, const lif_link &link,
                                             const lif_stretch &stretch, const launch_facts &c,
                                             step_place now) {
  const int end = min(now.k + link.period, stretch.n_steps);
  for (; now.k < end; now = after(d, link, now))
    for (int first = first_word(); first < link.n_words_sent; first += words_a_turn())
      send_words(link, c, message_of(stretch, now), first, 0, true);
}

/* RESIDENT: a thread has at most PASS neurons and keeps them in registers; NEAR: a warp receives at
 * most PASS words. A launch goes through k = -n_received .. n_steps - 1, below 0 what came while no
 * kernel ran, and where words are received late through one k more, without neurons of its own. */
template <class SUM, bool RESIDENT, bool NEAR>
__global__ void __launch_bounds__(THREADS, 1)
    joined_kernel(const __grid_constant__ lif_device d, const __grid_constant__ lif_link link,
                  const __grid_constant__ lif_stretch stretch, uint32_t *mask) {
  extern __shared__ __align__(16) char memory[];
  shared &s = *(shared *)memory;
  due_stimuli *kept = due_stimuli_of<ROOM>(d, s);
  launch_facts &c = *(launch_facts *)(kept + PASS * THREADS);
  if (*d.fault != NO_FAULT) return;
  const int lane = threadIdx.x % WARP;
  const int own_passes = RESIDENT ? 1 : (d.n_words + words_a_turn() - 1) / words_a_turn();
  const int inbox_passes = ((link.size - 1) * link.stride + words_a_turn() - 1) / words_a_turn();
  const bool late = link.direct && d.min_delay > 1;
  clear<false>(s);
  set_course(link, stretch, mask, c);
  __syncthreads();
  if (NEAR) {
    const inbox_word e = inbox_of(link, 0);
    if (lane < PASS) c.inbox[threadIdx.x / WARP * PASS + lane] = e.at;
    look_up_rows(d, link, c, e);
  }
  fault f = {NO_FAULT, 0};
  queue q = {0, 0, 0};
  neuron own[PASS];
  if (RESIDENT) take_own(d, s, c.t0, own, kept);
  step_place now = {-stretch.n_received, (int)((c.t0 - stretch.n_received) % d.slots),
                    stretch.n_received ? 0 : (int)(stretch.q % link.window)};
  const int n_turns = stretch.n_steps + late;
  unsigned barrier = 0;
  int since_barrier = 0;
  bool stop = false;
  for (; now.k < n_turns && !stop; now = after(d, link, now)) {
    if (now.k == 0 && stretch.n_received) now.box = 0;
    const bool steps = now.k >= 0 && now.k < stretch.n_steps;
    const bool receives = late ? now.k > 0 : link.direct || now.k < 0;
    const message received = late ? message_before(link, stretch, now) : message_of(stretch, now);
    bool sent_last = true;
    const uint64_t word = NEAR && receives && late ? listen(link, near_inbox(c), received) : 0;
    const int own_end = steps ? own_passes : 0, inboxes_from = RESIDENT ? 0 : own_end;
    const int inboxes_end = receives ? inboxes_from + inbox_passes : 0;
    const int n_passes = RESIDENT && NEAR ? 1 : max(own_end, inboxes_end);
    for (int pass = 0; pass < n_passes; pass++) {
      if (pass < own_end)
        step_own<SUM, RESIDENT>(d, link, stretch, s, c, q, now, pass, own, kept, f);
      if (pass >= inboxes_from && pass < inboxes_end)
        receive_pass<NEAR>(d, link, s, q, c, received, late, pass - inboxes_from, word);
      sent_last = send_listed<SUM, false, true, ROOM>(d, s, q, now.slot);
    }
    const bool meets =
        now.k + 1 == n_turns || now.k == -1 ||
        (steps && ++since_barrier == link.period && now.k + 1 < stretch.n_steps + !late);
    if (meets && sent_last) __syncthreads();
    if (meets) arrive(d, s, barrier);
#pragma unroll
    for (int u = 0; u < PASS && RESIDENT && steps; u++)
      prepare(d, place((first_word() + u) * WARP + lane), c.t0, now.k + 1, own[u],
              kept[u * THREADS + threadIdx.x]);
    if (!meets) continue;
    since_barrier = 0;
    stop = wait_for_all(d, s, barrier++);
  }
#pragma unroll
  for (int u = 0; u < PASS && RESIDENT; u++)
    put(d, place((first_word() + u) * WARP + lane), own[u], kept[u * THREADS + threadIdx.x]);
  add_up<false>(d, s);
  if (stop && late) tell_the_end(d, link, stretch, c, now);
  if (stop) report(d, s, barrier, f, true);
}

__global__ void set_clock(lif_clock *clock, lif_clock value) {
  *clock = value;
}

} // namespace

/* No rank has more words than the stride: whoever receives few has few. */
template <class SUM> static const void *kernel_for(bool resident, bool near) {
  if (near) return (const void *)joined_kernel<SUM, true, true>;
  return resident ? (const void *)joined_kernel<SUM, true, false>
                  : (const void *)joined_kernel<SUM, false, false>;
}

void lif_link_launch(const struct lif_device *d, const struct lif_link *link, int n_blocks,
                     const struct lif_stretch *stretch, uint32_t *mask) {
  const int a_turn = PASS * WARPS * n_blocks;
  const bool resident = d->n_words <= a_turn, near = (link->size - 1) * link->stride <= a_turn;
  const void *kernel =
      d->wide ? kernel_for<int64_t>(resident, near) : kernel_for<int32_t>(resident, near);
  struct lif_device own = *d;
  own.two_lists = bytes_of(2) <= gpu_shared_bytes();
  const size_t bytes = bytes_of(own.two_lists ? 2 : 1);
  void *args[] = {&own, (void *)link, (void *)stretch, &mask};
  CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
  CHECK_CUDA(cudaLaunchCooperativeKernel(kernel, dim3(n_blocks), dim3(THREADS), args, bytes,
                                         gpu_stream()));
}

bool lif_link_fits(void) {
  return bytes_of(1) <= gpu_shared_bytes();
}

void lif_link_set_clock(struct lif_clock *clock, struct lif_clock value) {
  set_clock<<<1, 1, 0, gpu_stream()>>>(clock, value);
  CHECK_CUDA(cudaGetLastError());
}
