/* Memory for the program: running out is fatal; how much the host grants. */
#include "mem.h"
#include "alloc.h"
#include "fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static size_t size_of(int64_t n, size_t bytes) {
  size_t total;
  if (!alloc_bytes(n, bytes, &total))
    DIE(EXIT_RUNTIME, "a request for %lld elements of %zu bytes is out of range", (long long)n,
        bytes);
  return total;
}

static void *take(size_t bytes) {
  void *block = alloc_block(bytes);
  if (!block)
    DIE(EXIT_RUNTIME, "out of memory: %zu bytes asked for, %lld already held", bytes,
        (long long)alloc_held());
  return block;
}

void *mem_alloc(int64_t n, size_t bytes) {
  size_t total = size_of(n, bytes);
  if (!total) return NULL;
  void *p = take(total);
  if (FASCICLE_CHECKED) memset(p, 0xff, total);
  return p;
}

void *mem_zero(int64_t n, size_t bytes) {
  size_t total = size_of(n, bytes);
  if (!total) return NULL;
  return memset(take(total), 0, total);
}

void *mem_grow(void *p, int64_t n, size_t bytes) {
  size_t total = size_of(n, bytes);
  void *fresh = total ? take(total) : NULL;
  if (p && fresh) memcpy(fresh, p, alloc_size(p) < total ? alloc_size(p) : total);
  mem_free(p);
  return fresh;
}

void mem_free(void *p) {
  alloc_free(p);
}

char *mem_string(const char *text) {
  size_t bytes = strlen(text) + 1;
  return memcpy(mem_alloc((int64_t)bytes, 1), text, bytes);
}

int64_t mem_held(void) {
  return alloc_held();
}

void mem_peak_restart(void) {
  alloc_peak_restart();
}

int64_t mem_peak(void) {
  return alloc_peak();
}

int64_t mem_resident_peak(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (int64_t)usage.ru_maxrss * 1024;
}

/* A limit in a file of one number; INT64_MAX for "max" or no such file. */
static int64_t limit_in(const char *path) {
  long long bytes = 0;
  FILE *file = fopen(path, "re");
  const bool got = file && fscanf(file, "%lld", &bytes) == 1 && bytes > 0;
  if (file) fclose(file);
  return got ? bytes : INT64_MAX;
}

/* The least memory.max from our cgroup (version 2) up to the root. */
static int64_t cgroup_limit(void) {
  char line[512] = "", path[640];
  int64_t least = INT64_MAX;
  FILE *file = fopen("/proc/self/cgroup", "re");
  while (file && fgets(line, sizeof line, file) && strncmp(line, "0::", 3)) line[0] = 0;
  if (file) fclose(file);
  if (strncmp(line, "0::/", 4)) return least;
  line[strcspn(line, "\n")] = 0;
  for (char *slash; (slash = strrchr(line + 3, '/')); *slash = 0) {
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", line + 3);
    const int64_t here = limit_in(path);
    least = here < least ? here : least;
  }
  const int64_t root =
      limit_in("/sys/fs/cgroup/memory.max"); /* of a container, which sees no more */
  return root < least ? root : least;
}

int64_t mem_of_host(void) {
  int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  const int64_t cgroup = cgroup_limit();
  if (cgroup < bytes) bytes = cgroup;
  const char *granted = getenv("SLURM_MEM_PER_NODE"); /* MiB; 0: all */
  const int64_t slurm = granted ? (int64_t)strtoll(granted, NULL, 10) << 20 : 0;
  return slurm > 0 && slurm < bytes ? slurm : bytes;
}
