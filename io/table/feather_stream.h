/* One buffer of a batch as a stream of bytes, plain or compressed: any size, in constant memory.
 * Functions return NULL when fine, otherwise what is wrong. */
#ifndef FASCICLE_FEATHER_STREAM_H
#define FASCICLE_FEATHER_STREAM_H

#include "feather_schema.h"

struct stream {
  enum arrow_codec codec; /* CODEC_NONE also for a buffer that was left uncompressed */
  const uint8_t *at;
  int64_t left;        /* input not used yet */
  int64_t total, done; /* bytes of the content, and how many were read */
  void *context;
  bool ended; /* the frame's end was seen */
};

const char *stream_open(struct stream *s, struct arrow_batch *batch, int64_t buffer);

/* The next `bytes` bytes; an error when the content ends before. */
const char *stream_read(struct stream *s, void *to, int64_t bytes);
const char *stream_skip(struct stream *s, int64_t bytes);

/* Read what is left and check that content and frame end together, with nothing behind. */
const char *stream_finish(struct stream *s);

/* Accepts a zeroed stream. */
void stream_close(struct stream *s);

#endif
