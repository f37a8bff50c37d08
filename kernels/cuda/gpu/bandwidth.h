/* Measured rates of the chosen device, in bytes per second. Each call takes some milliseconds. */
#ifndef FASCICLE_BANDWIDTH_H
#define FASCICLE_BANDWIDTH_H

#include "gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Device memory, bytes read plus bytes written. */
double gpu_copy_rate(void);

/* Random rows of 128 bytes out of n_rows. */
double gpu_gather_rate(int64_t n_rows);

/* Plain copies from pinned host memory to the device. */
double gpu_upload_rate(void);

#ifdef __cplusplus
}
#endif
#endif
