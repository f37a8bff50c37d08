/* What a random number is for: the last word of the counter, so that no two uses share a draw. */
#ifndef FASCICLE_PURPOSE_H
#define FASCICLE_PURPOSE_H

enum purpose {
  PURPOSE_EDGE = 0x10000001, /* (pre id, post id) */
  PURPOSE_EMBEDDING,         /* (token, column) */
  PURPOSE_PROJECTION,        /* (node id, column) */
  PURPOSE_READOUT,           /* (node id, token) */
  PURPOSE_READOUT_BIAS,      /* (token) */
  PURPOSE_WINDOW,            /* (step low, step high, sample) */
  PURPOSE_EVALUATION,        /* (0, 0, window) */
  PURPOSE_SAMPLE,            /* (position low, position high, prompt) */
  PURPOSE_RADIUS             /* (node id): start of the power iteration */
};

#endif
