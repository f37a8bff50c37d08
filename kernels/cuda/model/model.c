/* The character model on one GPU: what struct model_backend promises. Products by cuBLAS in
 * fp32, all else by kernels/cuda/model/kernels.cu. cuBLAS counts columns first: our [n][B] rows
 * are its B x n matrices. */
#include "core/fail.h"
#include "kernels/cuda/gpu/arrays.h"
#include "kernels/cuda/gpu/gpu.h"
#include "core/mem.h"
#include "contract/model.h"
#include "device.h"

#include <cublas_v2.h>
#include <string.h>

/* Host memory from which a step's tokens are copied while the host goes on; alternating. */
enum { STAGES = 2 };
struct stage {
  int32_t *host; /* [3 T B + V + 1] token, target, position, first */
  cudaEvent_t sent;
};

struct figures_kept {
  struct model_figures *host; /* pinned */
  cudaEvent_t copied;
};

struct model {
  struct model_shape shape;
  bool want_gradient;
  struct model_layout at;
  struct model_device d;
  cublasHandle_t blas;
  struct model_arrays a;
  struct stage stage[STAGES];
  struct figures_kept kept[MODEL_FIGURES_KEPT];
  int64_t steps, noted, read; /* so far */
};

static void check_blas_at(const char *file, int line, cublasStatus_t code, const char *call) {
  if (code != CUBLAS_STATUS_SUCCESS)
    die_at(file, line, EXIT_RUNTIME, "%s: %s", call, cublasGetStatusString(code));
}
#define CHECK_BLAS(call) check_blas_at(__FILE__, __LINE__, (call), #call)

static float *at(const struct model *m, enum model_array which, enum model_block block) {
  return m->a.array[which] + m->at.at[block];
}

/* ---- memory ---- */

static void open_stages(struct model *m) {
  const int64_t TB = (int64_t)m->shape.steps * m->shape.batch;
  for (int i = 0; i < STAGES; i++) {
    m->stage[i].host = gpu_pinned(3 * TB + m->shape.vocabulary + 1, sizeof(int32_t));
    CHECK_CUDA(cudaEventCreateWithFlags(&m->stage[i].sent, cudaEventDisableTiming));
  }
  for (int i = 0; i < MODEL_FIGURES_KEPT; i++) {
    m->kept[i].host = gpu_pinned(1, sizeof(struct model_figures));
    CHECK_CUDA(cudaEventCreateWithFlags(&m->kept[i].copied, cudaEventDisableTiming));
  }
}

static void close_stages(struct model *m) {
  for (int i = 0; i < STAGES; i++) {
    gpu_pinned_free(m->stage[i].host);
    CHECK_CUDA(cudaEventDestroy(m->stage[i].sent));
  }
  for (int i = 0; i < MODEL_FIGURES_KEPT; i++) {
    gpu_pinned_free(m->kept[i].host);
    CHECK_CUDA(cudaEventDestroy(m->kept[i].copied));
  }
}

static struct arrays arrays_of(struct model_arrays *a, const struct model_shape *s,
                               bool want_gradient) {
  struct arrays list = {0};
  model_list(&list, a, s, want_gradient);
  return list;
}

static struct status open(const struct model_shape *s, bool want_gradient, int n_threads,
                          struct model **model) {
  (void)n_threads;
  struct model *m = *model = NEW_ZERO(struct model, 1);
  m->shape = *s, m->want_gradient = want_gradient, m->at = model_layout_of(s);
  m->d = (struct model_device){s->vocabulary, s->embedding, s->batch, s->steps, s->n_in, s->n_out};
  CHECK_BLAS(cublasCreate(&m->blas));
  CHECK_BLAS(cublasSetStream(m->blas, gpu_stream()));
  const struct arrays arrays = arrays_of(&m->a, s, want_gradient);
  gpu_arrays_open(&arrays);
  model_device_fill(m->a.scale, s->n_edges, 1);
  open_stages(m);
  return fine();
}

static void close(struct model *m) {
  if (!m) return;
  CHECK_CUDA(cudaStreamSynchronize(gpu_stream()));
  CHECK_BLAS(cublasDestroy(m->blas));
  close_stages(m);
  const struct arrays arrays = arrays_of(&m->a, &m->shape, true);
  gpu_arrays_close(&arrays);
  mem_free(m);
}

static int64_t bytes(const struct model_shape *s, bool want_gradient) {
  struct model_arrays a;
  const struct arrays arrays = arrays_of(&a, s, want_gradient);
  return arrays_bytes(&arrays);
}

static float *array(struct model *m, enum model_array which) {
  return m->a.array[which];
}

static void set_scale(struct model *m, const float *scale) {
  gpu_put(m->a.scale, scale, (size_t)m->shape.n_edges * sizeof *scale);
}

/* ---- to and from the recurrence ---- */

static void copy(float *to, const float *from, int64_t n) {
  if (n > 0)
    CHECK_CUDA(
        cudaMemcpyAsync(to, from, (size_t)n * sizeof *to, cudaMemcpyDeviceToDevice, gpu_stream()));
}

static void load_core(struct model *m, float *value, float *leak, float *bias) {
  model_device_multiply(m->a.scale, at(m, MODEL_PARAMETERS, MODEL_EDGES), m->shape.n_edges, value);
  model_device_sigmoid(at(m, MODEL_PARAMETERS, MODEL_LEAK), m->shape.n_own, leak, m->a.leak);
  copy(bias, at(m, MODEL_PARAMETERS, MODEL_BIAS), m->shape.n_own);
}

static void take_core(struct model *m, const float *d_value, const float *d_leak,
                      const float *d_bias) {
  ASSERT(m->want_gradient);
  model_device_multiply(m->a.scale, d_value, m->shape.n_edges, at(m, MODEL_GRADIENT, MODEL_EDGES));
  model_device_sigmoid_gradient(m->a.leak, d_leak, m->shape.n_own,
                                at(m, MODEL_GRADIENT, MODEL_LEAK));
  copy(at(m, MODEL_GRADIENT, MODEL_BIAS), d_bias, m->shape.n_own);
}

/* ---- drive ---- */

/* position [n] sorted by token, first [V + 1]: so that the backward pass can sum each token's in a
 * fixed order.
 */
static void sort_positions(const int32_t *token, int n, int V, int32_t *position, int32_t *first) {
  memset(first, 0, (size_t)(V + 1) * sizeof *first);
  for (int i = 0; i < n; i++) first[token[i] + 1]++;
  for (int v = 0; v < V; v++) first[v + 1] += first[v];
  for (int i = 0; i < n; i++) position[first[token[i]]++] = i;
  memmove(first + 1, first, (size_t)V * sizeof *first);
  first[0] = 0;
}

static void send(void *device, const int32_t *staged, int64_t n) {
  CHECK_CUDA(cudaMemcpyAsync(device, staged, (size_t)n * sizeof *staged, cudaMemcpyHostToDevice,
                             gpu_stream()));
}

/* table [n_in][V] = projection [n_in][W] embedding' [W][V] + bias [n_in] */
static void table(struct model *m) {
  const int V = m->shape.vocabulary, W = m->shape.embedding, n_in = m->shape.n_in;
  const float *projection = at(m, MODEL_PARAMETERS, MODEL_PROJECTION), one = 1;
  model_device_table_start(&m->d, projection, m->a.table);
  if (n_in == 0) return;
  CHECK_BLAS(cublasSgemm(m->blas, CUBLAS_OP_T, CUBLAS_OP_N, V, n_in, W, &one,
                         at(m, MODEL_PARAMETERS, MODEL_EMBEDDING), W, projection, W + 1, &one,
                         m->a.table, V));
}

/* Whether all n are in [least, end). */
static bool token_range(const int32_t *token, int64_t n, int32_t least, int32_t end) {
  for (int64_t i = 0; i < n; i++)
    if (token[i] < least || token[i] >= end) return false;
  return true;
}

static void drive(struct model *m, const int32_t *token, float *to) {
  ASSERT(token_range(token, (int64_t)m->shape.steps * m->shape.batch, 0, m->shape.vocabulary));
  const struct stage *stage = &m->stage[++m->steps % STAGES];
  const int V = m->shape.vocabulary, n = m->shape.steps * m->shape.batch;
  int32_t *staged = stage->host, *position = staged + 2 * (int64_t)n, *first = position + n;
  CHECK_CUDA(cudaEventSynchronize(stage->sent));
  memcpy(staged, token, (size_t)n * sizeof *staged);
  send(m->a.token, staged, n);
  if (m->want_gradient) {
    sort_positions(token, n, V, position, first);
    send(m->a.position, position, n), send(m->a.first, first, V + 1);
  }
  CHECK_CUDA(cudaEventRecord(stage->sent, gpu_stream()));
  table(m);
  model_device_drive(&m->d, m->a.table, m->a.token, to);
}

/* d_embedding [V][W] = d_table' [V][n_in] projection [n_in][W] */
static void drive_gradient(struct model *m, const float *d_drive) {
  const int V = m->shape.vocabulary, W = m->shape.embedding, n_in = m->shape.n_in;
  const float *projection = at(m, MODEL_PARAMETERS, MODEL_PROJECTION), one = 1, zero = 0;
  float *d_embedding = at(m, MODEL_GRADIENT, MODEL_EMBEDDING);
  ASSERT(m->want_gradient);
  model_device_drive_gradient(&m->d, d_drive, m->a.position, m->a.first,
                              at(m, MODEL_PARAMETERS, MODEL_EMBEDDING), m->a.d_table,
                              at(m, MODEL_GRADIENT, MODEL_PROJECTION));
  if (n_in == 0)
    CHECK_CUDA(
        cudaMemsetAsync(d_embedding, 0, (size_t)V * (size_t)W * sizeof *d_embedding, gpu_stream()));
  else
    CHECK_BLAS(cublasSgemm(m->blas, CUBLAS_OP_N, CUBLAS_OP_T, W, V, n_in, &one, projection, W + 1,
                           m->a.d_table, V, &zero, d_embedding, W));
}

/* ---- readout ---- */

/* logit [V][T B] = bias + readout' [V][n_out] out [n_out][T B], as one product; then by time */
static void readout(struct model *m, const float *output) {
  const int V = m->shape.vocabulary, n_out = m->shape.n_out, TB = m->shape.steps * m->shape.batch;
  const float one = 1, zero = 0;
  model_device_by_row(&m->d, n_out, output, m->a.out_rows);
  if (n_out > 0)
    CHECK_BLAS(cublasSgemm(m->blas, CUBLAS_OP_N, CUBLAS_OP_T, TB, V, n_out, &one, m->a.out_rows, TB,
                           at(m, MODEL_PARAMETERS, MODEL_READOUT), V, &zero, m->a.logit_rows, TB));
  model_device_logits(&m->d,
                      m->shape.adds_bias ? at(m, MODEL_PARAMETERS, MODEL_READOUT_BIAS) : NULL,
                      n_out > 0 ? m->a.logit_rows : NULL, m->a.logit);
}

static float *logit(struct model *m) {
  return m->a.logit;
}

static void loss(struct model *m, const int32_t *target, double scale) {
  const struct stage *stage = &m->stage[m->steps % STAGES]; /* that of the drive before */
  const int64_t n = (int64_t)m->shape.steps * m->shape.batch;
  ASSERT(token_range(target, n, -1, m->shape.vocabulary));
  memcpy(stage->host + n, target, (size_t)n * sizeof *target);
  send(m->a.target, stage->host + n, n);
  CHECK_CUDA(cudaEventRecord(stage->sent, gpu_stream()));
  model_device_loss(&m->d, m->a.target, scale, m->a.logit, m->a.nats, m->a.sum);
}

static double value_of(const double *device) {
  double value;
  gpu_get(&value, device, sizeof value);
  return value;
}

static double nats(struct model *m) {
  return value_of(m->a.sum);
}

/* d_out_t [n_out][B] = readout [n_out][V] d_logit_t [V][B];  d_readout [n_out][V] = sum
 * over t, b of out d_logit */
static void readout_gradient(struct model *m, const float *output, float *d_output) {
  (void)output; /* by row it is here since readout() */
  const int V = m->shape.vocabulary, B = m->shape.batch, n_out = m->shape.n_out,
            TB = m->shape.steps * B;
  const float one = 1, zero = 0;
  ASSERT(m->want_gradient);
  model_device_by_row(&m->d, V, m->a.logit, m->a.logit_rows);
  model_device_row_sums(&m->d, V, m->a.logit_rows, at(m, MODEL_GRADIENT, MODEL_READOUT_BIAS));
  if (n_out == 0) return;
  CHECK_BLAS(cublasSgemmStridedBatched(m->blas, CUBLAS_OP_N, CUBLAS_OP_N, B, n_out, V, &one,
                                       m->a.logit, B, (long long)V * B,
                                       at(m, MODEL_PARAMETERS, MODEL_READOUT), V, 0, &zero,
                                       d_output, B, (long long)n_out * B, m->shape.steps));
  CHECK_BLAS(cublasSgemm(m->blas, CUBLAS_OP_T, CUBLAS_OP_N, V, n_out, TB, &one, m->a.logit_rows, TB,
                         m->a.out_rows, TB, &zero, at(m, MODEL_GRADIENT, MODEL_READOUT), V));
}

/* ---- optimiser and figures ---- */

/* Whether [first, first + n) are parameters. */
static bool has_range(const struct model *m, int64_t first, int64_t n) {
  return first >= 0 && n >= 0 && first + n <= m->at.at[MODEL_BLOCKS];
}

static void squares_clear(struct model *m) {
  CHECK_CUDA(cudaMemsetAsync(m->a.sum + 1, 0, sizeof *m->a.sum, gpu_stream()));
}

static void squares_add(struct model *m, int64_t first, int64_t n) {
  ASSERT(m->want_gradient && has_range(m, first, n));
  model_device_squares(m->a.array[MODEL_GRADIENT] + first, n, m->a.parts, m->a.sum + 1);
}

static double squares(struct model *m) {
  return value_of(m->a.sum + 1);
}

static void squares_set(struct model *m, double squares_of_all) {
  gpu_put(m->a.sum + 1, &squares_of_all, sizeof squares_of_all);
}

static void figures_note(struct model *m) {
  ASSERT(m->noted - m->read < MODEL_FIGURES_KEPT);
  const struct figures_kept *kept = &m->kept[m->noted++ % MODEL_FIGURES_KEPT];
  CHECK_CUDA(cudaMemcpyAsync(kept->host, m->a.sum, sizeof *kept->host, cudaMemcpyDeviceToHost,
                             gpu_stream()));
  CHECK_CUDA(cudaEventRecord(kept->copied, gpu_stream()));
}

static struct model_figures figures(struct model *m) {
  ASSERT(m->read < m->noted);
  const struct figures_kept *kept = &m->kept[m->read++ % MODEL_FIGURES_KEPT];
  CHECK_CUDA(cudaEventSynchronize(kept->copied));
  return *kept->host;
}

static void update(struct model *m, int64_t first, int64_t n, const struct adamw *how) {
  ASSERT(m->want_gradient && has_range(m, first, n));
  const struct adamw_factors f = adamw_factors_of(how);
  model_device_adamw(&f, m->a.sum + 1, n, m->a.array[MODEL_PARAMETERS] + first,
                     m->a.array[MODEL_GRADIENT] + first, m->a.array[MODEL_MOMENT1] + first,
                     m->a.array[MODEL_MOMENT2] + first);
}

static int64_t count_beyond(struct model *m, const float *x, int64_t n, float level) {
  unsigned long long count;
  model_device_count_beyond(x, n, level, m->a.count);
  gpu_get(&count, m->a.count, sizeof count);
  return (int64_t)count;
}

const struct model_backend model_cuda = {.open = open,
                                         .close = close,
                                         .bytes = bytes,
                                         .array = array,
                                         .set_scale = set_scale,
                                         .load_core = load_core,
                                         .take_core = take_core,
                                         .drive = drive,
                                         .readout = readout,
                                         .logit = logit,
                                         .loss = loss,
                                         .nats = nats,
                                         .readout_gradient = readout_gradient,
                                         .drive_gradient = drive_gradient,
                                         .squares_clear = squares_clear,
                                         .squares_add = squares_add,
                                         .squares = squares,
                                         .squares_set = squares_set,
                                         .update = update,
                                         .figures_note = figures_note,
                                         .figures = figures,
                                         .count_beyond = count_beyond};
