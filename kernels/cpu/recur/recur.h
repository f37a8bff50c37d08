/* The recurrence of the cpu backend. */
#ifndef FASCICLE_RECUR_CPU_H
#define FASCICLE_RECUR_CPU_H

#include "contract/recurrence.h"

extern const struct recur_backend recur_cpu;

#endif
