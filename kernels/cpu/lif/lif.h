/* The fast LIF path of the cpu backend. */
#ifndef FASCICLE_LIF_CPU_H
#define FASCICLE_LIF_CPU_H

#include "contract/lif.h"

extern const struct lif_backend lif_cpu;

#endif
