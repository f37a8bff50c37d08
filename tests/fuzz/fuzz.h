/* What the fuzz targets share: a scratch folder in memory, files from bytes. */
#ifndef FASCICLE_FUZZ_H
#define FASCICLE_FUZZ_H

#include "core/types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The process' own folder under FUZZ_TMP (/dev/shm), made once. */
static inline const char *fuzz_folder(void) {
  static char folder[200];
  if (!*folder) {
    const char *above = getenv("FUZZ_TMP");
    snprintf(folder, sizeof folder, "%.150s/fascicle_fuzz_%d", above ? above : "/dev/shm",
             (int)getpid());
    mkdir(folder, 0700);
  }
  return folder;
}

/* Write `size` bytes to NAME in that folder; the path is valid until the next call. */
static inline const char *fuzz_file(const char *name, const void *data, size_t size) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, size, file) != size || fclose(file)) abort();
  return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
