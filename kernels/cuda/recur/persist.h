/* The kernels of the persistent window (kernels/cuda/layout/persist.h), and who may use them. No
 * atomics on floats and fixed orders: the bits repeat. */
#ifndef FASCICLE_RECUR_PERSIST_H
#define FASCICLE_RECUR_PERSIST_H

#include "device.h"
#include "kernels/cuda/layout/persist.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the device can hold all blocks of each kernel at a time. */
bool persist_resident(const struct persist_device *p);

/* The whole window, queued on gpu_stream(). */
void persist_forward(const struct recur_device *d, const struct persist_device *p);
void persist_backward(const struct recur_device *d, const struct persist_device *p);

/* Whether the GPU in use is one for it, and the net, by counts alone. */
bool persist_serves(const struct recur_net *net);

/* Tables and arrays on the device. False where the network, the batch or the GPU is not one for it:
 * nothing is held then. d: its counts. */
bool persist_open(const struct recur_net *net, const struct recur_device *d,
                  struct persist_device *p);
void persist_close(const struct recur_device *d, struct persist_device *p); /* a zeroed one too */

#ifdef __cplusplus
}
#endif
#endif
