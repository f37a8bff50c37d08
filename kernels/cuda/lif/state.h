/* The host's side of LIF on one GPU, shared by kernels/cuda/lif/lif.c (open, state in and
 * out), kernels/cuda/lif/inputs.c (what never changes, to the device) and
 * kernels/cuda/lif/launches.c (steps). */
#ifndef FASCICLE_LIF_GPU_H
#define FASCICLE_LIF_GPU_H

#include "contract/lif.h"
#include "device.h"
#include "model_device.h"
#include "contract/lif_launch.h"

/* What the device reports of a launch, in one copy. */
struct lif_result {
  unsigned long long fault; /* of lif_device */
  int64_t fault_value;
  unsigned long long tally[LIF_TRIALS][LIF_TALLIES];
};

/* Steps that the device makes in one launch. Two are used in turn, so that the device goes on
 * while the host reads. */
struct lif_launch {
  int64_t step;
  int n, n_trials;
  uint32_t *mask, *row; /* device */
  int32_t *count;       /* device [trials][steps][chunks] */
  struct lif_result *result;
  int32_t *count_host; /* pinned, as count */
  cudaEvent_t done;
};

struct lif_engine {
  struct lif_device d;
  bool has_model; /* else lif_shift */
  struct lif_device_model model;
  struct lif_model_stimulus *model_stimulus; /* [n_stimuli] to free what they point to */
  struct lif_result *result;                 /* device */
  const struct lif_net *net;
  int64_t step;
  int n_trials; /* that were opened; d.n_trials still run */
  int n_blocks, launch_steps;
  struct lif_launch launch[LIF_LAUNCHES];
  cudaStream_t copies;
  uint32_t *row_sent; /* of deliver, on the device */
  int64_t sent_room;
  struct lif_device_stimulus *stimulus_host; /* to free what they point to */
  int n_stimuli;
  struct lif_spikes *mine; /* [n_trials] rows: pinned */
  int64_t *row_room, step_room;
  double spikes_per_step;            /* of the last launch, all trials, all joined ranks */
  struct lif_gpu_exchange *exchange; /* to the GPUs of the other ranks, or NULL */
};

/* Edges, ids, mutes, stimuli; the device's copy of them is freed by lif_inputs_free. EXIT_DEVICE
 * when host memory cannot be pinned. Local. */
struct status lif_inputs_init(struct lif_engine *s, const struct lif_stimulus *stimulus,
                              int n_stimuli);
void lif_inputs_free(struct lif_engine *s);

/* The model's classes and components to the device, with what its stimuli need beside
 * lif_inputs_init's; all is freed by lif_gpu_model_close. */
void lif_gpu_model_open(struct lif_engine *s, const struct lif_model *model,
                        const struct lif_stimulus *stimulus, int n_stimuli);
void lif_gpu_model_close(struct lif_engine *s);

void lif_launches_init(struct lif_engine *s);
void lif_launches_free(struct lif_engine *s);

/* As the entries of struct lif_backend and lif_together. */
int64_t lif_launches_run(struct lif_engine *s, int n_trials, int64_t n, struct lif_spikes *mine,
                         struct lif_tally *tally, struct lif_fault *fault, int *faulty);
void lif_launches_integrate(struct lif_engine *s, int n, struct lif_spikes *mine,
                            struct lif_fault *fault);

#endif
