/* Device memory, the stream, captured graphs. Every CUDA error ends here. */
#include "gpu.h"
#include "core/fail.h"
#include "start.h"
#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cudaStream_t stream;
static int processors;
static size_t shared_bytes;
static int64_t held, most;
static bool recording; /* between gpu_capture_begin and gpu_capture_end */

void gpu_check_at(const char *file, int line, cudaError_t code, const char *call) {
  if (code == cudaSuccess) return;
  die_at(file, line, EXIT_RUNTIME, "%s: %s", call, cudaGetErrorString(code));
}

static struct status no_device(const char *why) {
  return failure(EXIT_DEVICE,
                 "--device cuda: no usable GPU: %s; run on a GPU node, or use --device cpu", why);
}

/* A binary without code for the device fails at its first launch, so that is tried here. */
static cudaError_t try_device(int device) {
  cudaError_t code = cudaSetDevice(device);
  if (code == cudaSuccess) code = cudaFree(NULL);
  if (code == cudaSuccess) code = gpu_can_launch();
  return code;
}

/* What a block can have, or less where the environment asks for it: how a smaller GPU would go. */
static struct status find_shared_bytes(int device) {
  int whole;
  CHECK_CUDA(cudaDeviceGetAttribute(&whole, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  shared_bytes = (size_t)whole;
  const char *asked = getenv(GPU_SHARED_BYTES);
  if (!asked) return fine();
  char *end;
  const long long bytes = strtoll(asked, &end, 10);
  if (end == asked || *end || bytes <= 0)
    return failure(EXIT_USAGE, "%s=%s in the environment: a number of bytes is wanted, or unset it",
                   GPU_SHARED_BYTES, asked);
  if (bytes < whole) shared_bytes = (size_t)bytes;
  return fine();
}

struct status gpu_start(int local_rank) {
  int n = 0;
  const cudaError_t found = cudaGetDeviceCount(&n);
  if (found != cudaSuccess) return no_device(cudaGetErrorString(found));
  if (n == 0) return no_device("this host has none");
  const cudaError_t code = try_device(local_rank % n);
  if (code != cudaSuccess) return no_device(cudaGetErrorString(code));
  CHECK_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, local_rank % n));
  TRY(find_shared_bytes(local_rank % n));
  CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return fine();
}

void gpu_stop(void) {
  if (stream) CHECK_CUDA(cudaStreamDestroy(stream));
  stream = NULL;
}

void gpu_describe(char *text, size_t size) {
  struct cudaDeviceProp p;
  int n = 0, device = 0;
  const cudaError_t code = cudaGetDeviceCount(&n);
  if (code != cudaSuccess || n == 0) {
    snprintf(text, size, "no usable GPU: %s",
             code ? cudaGetErrorString(code) : "this host has none");
    return;
  }
  CHECK_CUDA(cudaGetDevice(&device));
  CHECK_CUDA(cudaGetDeviceProperties(&p, device));
  snprintf(text, size, "%s, %.0f GiB, sm_%d%d, %d on this host", p.name,
           (double)p.totalGlobalMem / (1 << 30), p.major, p.minor, n);
}

void gpu_identity(char id[16]) {
  struct cudaDeviceProp about;
  int device;
  CHECK_CUDA(cudaGetDevice(&device));
  CHECK_CUDA(cudaGetDeviceProperties(&about, device));
  memcpy(id, about.uuid.bytes, 16);
}

cudaStream_t gpu_stream(void) {
  return stream;
}

int gpu_processors(void) {
  return processors;
}

size_t gpu_shared_bytes(void) {
  return shared_bytes;
}

/* ---- memory ---- */

enum { HEADER = 256 }; /* keeps cudaMalloc's alignment; holds the size of the block */

void *gpu_zero(int64_t n, size_t bytes) {
  ASSERT(n >= 0 && bytes > 0);
  if (n == 0) return NULL;
  const int64_t size = n * (int64_t)bytes + HEADER;
  char *at = NULL;
  const cudaError_t code = cudaMalloc((void **)&at, (size_t)size);
  if (code != cudaSuccess)
    DIE(EXIT_RUNTIME, "out of GPU memory: %lld bytes wanted, %lld held (%s)", (long long)size,
        (long long)held, cudaGetErrorString(code));
  CHECK_CUDA(cudaMemsetAsync(at + HEADER, 0, (size_t)size - HEADER, stream));
  CHECK_CUDA(cudaMemcpyAsync(at, &size, sizeof size, cudaMemcpyHostToDevice, stream));
  held += size;
  if (held > most) most = held;
  return at + HEADER;
}

/* Arrays that other processes map. */
enum { MOST_EXPORTS = 128 };
static struct {
  const void *array;
  bool freed; /* by its owner: set aside */
} export[MOST_EXPORTS];
static int n_exports;

static int find_export(const void *array) {
  for (int i = 0; i < n_exports; i++)
    if (export[i].array == array) return i;
  return -1;
}

const void *gpu_array_at(const void *allocation) {
  return (const char *)allocation + HEADER;
}

void gpu_export(const void *array) {
  if (find_export(array) >= 0) return;
  if (n_exports == MOST_EXPORTS)
    DIE(EXIT_RUNTIME, "more than %d arrays are mapped by other ranks", n_exports);
  export[n_exports].array = array, export[n_exports++].freed = false;
}

bool gpu_set_aside(const void *array) {
  const int i = find_export(array);
  return i >= 0 && export[i].freed;
}

void gpu_release(const void *array) {
  const int i = find_export(array);
  if (i < 0) return;
  const bool freed = export[i].freed;
  export[i] = export[--n_exports];
  if (freed) gpu_free((void *)(uintptr_t)array);
}

void gpu_free(void *array) {
  const int exported = find_export(array);
  if (exported >= 0) export[exported].freed = true;
  if (!array || exported >= 0) return;
  int64_t size;
  char *at = (char *)array - HEADER;
  gpu_get(&size, at, sizeof size);
  held -= size;
  CHECK_CUDA(cudaFree(at));
}

void *gpu_copy_of(const void *host, int64_t n, size_t bytes) {
  void *array = gpu_zero(n, bytes);
  gpu_put(array, host, (size_t)n * bytes);
  return array;
}

void gpu_put(void *array, const void *host, size_t bytes) {
  if (bytes == 0) return;
  ASSERT(array && host);
  CHECK_CUDA(cudaMemcpyAsync(array, host, bytes, cudaMemcpyHostToDevice, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
}

void gpu_get(void *host, const void *array, size_t bytes) {
  if (bytes == 0) return;
  ASSERT(array && host);
  CHECK_CUDA(cudaMemcpyAsync(host, array, bytes, cudaMemcpyDeviceToHost, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
}

int64_t gpu_peak(void) {
  return most;
}

int64_t gpu_free_bytes(void) {
  size_t left, all;
  CHECK_CUDA(cudaMemGetInfo(&left, &all));
  return (int64_t)left;
}

void *gpu_pinned(int64_t n, size_t bytes) {
  void *host = NULL;
  if (n > 0) CHECK_CUDA(cudaMallocHost(&host, (size_t)n * bytes));
  return host;
}

void gpu_pinned_free(void *host) {
  if (host) CHECK_CUDA(cudaFreeHost(host));
}

cudaError_t gpu_pin(void *host, size_t bytes) {
  return cudaHostRegister(host, bytes, cudaHostRegisterMapped);
}

void gpu_unpin(void *host) {
  CHECK_CUDA(cudaHostUnregister(host));
}

void *gpu_pinned_at(void *host) {
  void *array;
  CHECK_CUDA(cudaHostGetDevicePointer(&array, host, 0));
  return array;
}

/* ---- captured graphs ---- */

void gpu_capture_begin(void) {
  ASSERT(!recording);
  recording = true;
  CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}

cudaGraphExec_t gpu_capture_end(void) {
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  ASSERT(recording);
  recording = false;
  CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  /* Launches keep the priority of the stream they were captured on: transfers go before work. */
  CHECK_CUDA(cudaGraphInstantiate(&ready, graph, cudaGraphInstantiateFlagUseNodePriority));
  CHECK_CUDA(cudaGraphDestroy(graph));
  return ready;
}

void gpu_replay(cudaGraphExec_t graph) {
  ASSERT(!recording);
  CHECK_CUDA(cudaGraphLaunch(graph, stream));
}
