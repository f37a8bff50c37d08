/* The character model around the recurrence, and its optimiser, on one rank: what every backend
 * promises.
 *
 * V tokens, W columns of embedding, B columns of batch, T characters. Parameters of this part, one
 * after the other in one array (`struct model_layout` says where):
 *
 *   theta [n_edges]  rho [n_own]  bias [n_own]                        the core: v = c theta, a =
 *                    sigmoid(rho)
 *   embedding [V][W]                                                  the same on every part
 *   projection [n_in][W + 1]   weights, then bias, per input node
 *   readout [n_out][V]         weights per output node
 *   readout bias [V]                                                  the same on every part
 *
 *   d_t[i] = projection_i . embedding[x_t] + bias_i          drive of own input nodes
 *   logit_t[v] = sum over output nodes of readout[o][v] out_t[o]  + readout bias[v]
 *   loss = - sum log softmax(logit_t)[y_t]
 *
 * Products are float with partial sums in double. Results do not depend on the number of
 * threads. */
#ifndef FASCICLE_MODEL_BACKEND_H
#define FASCICLE_MODEL_BACKEND_H

#include "adamw.h"
#include "core/fail.h"
#include "core/types.h"

enum model_block {
  MODEL_EDGES,
  MODEL_LEAK,
  MODEL_BIAS,
  MODEL_EMBEDDING,
  MODEL_PROJECTION,
  MODEL_READOUT,
  MODEL_READOUT_BIAS,
  MODEL_BLOCKS
};

struct model_shape {
  int vocabulary, embedding; /* V, W */
  int batch, steps;          /* B, T */
  eidx n_edges;              /* edges of this part, near then far */
  lidx n_own, n_in, n_out;   /* rows, input and output nodes of this part */
  bool adds_bias;            /* this part adds the readout bias: true on exactly one */
};

/* Block b lies at [at[b], at[b + 1]). */
struct model_layout {
  int64_t at[MODEL_BLOCKS + 1];
};

static inline struct model_layout model_layout_of(const struct model_shape *s) {
  const int64_t size[MODEL_BLOCKS] = {s->n_edges,
                                      s->n_own,
                                      s->n_own,
                                      (int64_t)s->vocabulary * s->embedding,
                                      s->n_in * ((int64_t)s->embedding + 1),
                                      s->n_out * (int64_t)s->vocabulary,
                                      s->vocabulary};
  struct model_layout layout = {{0}};
  for (int b = 0; b < MODEL_BLOCKS; b++) layout.at[b + 1] = layout.at[b] + size[b];
  return layout;
}

enum model_array { MODEL_PARAMETERS, MODEL_GRADIENT, MODEL_MOMENT1, MODEL_MOMENT2, MODEL_ARRAYS };

/* What one training step shows. */
struct model_figures {
  double nats,
      squares; /* of the last loss; the sum of squares of the gradient, over the ranks set */
};
enum { MODEL_FIGURES_KEPT = 2 };

struct model; /* the backend's state */

struct model_backend {
  /* Local. All memory is taken here; `bytes` predicts it. Parameters and moments start at 0.
   * Without `want_gradient` only the parameters are kept. */
  struct status (*open)(const struct model_shape *shape, bool want_gradient, int n_threads,
                        struct model **model);
  void (*close)(struct model *model);
  int64_t (*bytes)(const struct model_shape *shape, bool want_gradient);

  /* An array in the backend's memory [layout.at[MODEL_BLOCKS]], valid until close; the
   * backend's put and get move it. */
  float *(*array)(struct model *model, enum model_array which);
  /* c [n_edges] from host memory; 1 until set. */
  void (*set_scale)(struct model *model, const float *scale);
  /* value = c theta, leak = sigmoid(rho), bias: from the parameters into the recurrence. */
  void (*load_core)(struct model *model, float *value, float *leak, float *bias);
  /* Gradients of the recurrence -> gradient of theta, rho, bias. */
  void (*take_core)(struct model *model, const float *d_value, const float *d_leak,
                    const float *d_bias);

  /* Tokens [T][B] in host memory -> drive [T][n_in][B]. The tokens are kept
   * for the backward pass. */
  void (*drive)(struct model *model, const int32_t *token, float *drive);
  /* This part's share of the logits from output [T][n_out][B]; `logit` is where they lie,
   * [T][V][B]: the caller sums them over the parts. */
  void (*readout)(struct model *model, const float *output);
  float *(*logit)(struct model *model);
  /* Loss against target [T][B] (host memory), where -1 is not counted; the logits become scale *
   * (softmax - one at the target), 0 where not counted. */
  void (*loss)(struct model *model, const int32_t *target, double scale);
  /* The sum of the last loss, in nats. Waits for it, as no other entry of a step does: tokens and
   * targets are copied before drive and loss return. */
  double (*nats)(struct model *model);

  /* From the logits' gradient: gradient of readout and its bias, and d_output [T][n_out][B].
   * output: what readout() had, unchanged since. */
  void (*readout_gradient)(struct model *model, const float *output, float *d_output);
  /* From d_drive [T][n_in][B]: gradient of projection, and this part's share of the embedding's. */
  void (*drive_gradient)(struct model *model, const float *d_drive);

  /* The sum of squares of the gradient, which the update clips by: set to 0, [first, first + n)
   * added, and, where several ranks share it, read (waits) and set. */
  void (*squares_clear)(struct model *model);
  void (*squares_add)(struct model *model, int64_t first, int64_t n);
  double (*squares)(struct model *model);
  void (*squares_set)(struct model *model, double squares);
  /* One step of AdamW for the parameters [first, first + n). Where the
   * squares are not finite, none. */
  void (*update)(struct model *model, int64_t first, int64_t n, const struct adamw *how);

  /* Note the figures of the step queued last; the oldest noted and not yet read, waiting for that
   * step only. At most MODEL_FIGURES_KEPT are noted at a time. */
  void (*figures_note)(struct model *model);
  struct model_figures (*figures)(struct model *model);

  /* How many of x [n], in the backend's memory, lie beyond +-level. */
  int64_t (*count_beyond)(struct model *model, const float *x, int64_t n, float level);
};

#endif
