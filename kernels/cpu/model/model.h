/* The cpu backend's model table. */
#ifndef FASCICLE_MODEL_CPU_H
#define FASCICLE_MODEL_CPU_H

#include "contract/model.h"

extern const struct model_backend model_cpu;

#endif
