/* Buffers of a record batch, plain, LZ4 or ZSTD, as streams of bytes. */
#include "feather_stream.h"

#include <lz4frame.h>
#include <string.h>
#include <zstd.h>

enum { PREFIX = 8, SKIP = 1 << 16 };

const char *stream_open(struct stream *s, struct arrow_batch *batch, int64_t i) {
  struct arrow_buffer b;
  *s = (struct stream){0};
  const char *wrong = arrow_buffer(batch, i, &b);
  if (wrong) return wrong;
  *s = (struct stream){.at = b.at, .left = b.bytes, .total = b.bytes};
  if (batch->codec == CODEC_NONE || b.bytes == 0) return NULL;
  /* A compressed buffer begins with its uncompressed size; -1: it was left as it is. */
  if (b.bytes < PREFIX) return "a compressed buffer is too short";
  memcpy(&s->total, b.at, PREFIX);
  s->at += PREFIX, s->left -= PREFIX;
  if (s->total == -1) return s->total = s->left, NULL;
  if (s->total < 0) return "a compressed buffer has an impossible size";
  if (s->total == 0 && s->left == 0) return NULL;
  s->codec = batch->codec;
  if (s->codec == CODEC_LZ4) {
    if (LZ4F_isError(LZ4F_createDecompressionContext((LZ4F_dctx **)&s->context, LZ4F_VERSION)))
      DIE(EXIT_RUNTIME, "LZ4: no context");
  } else if (!(s->context = ZSTD_createDCtx())) {
    DIE(EXIT_RUNTIME, "ZSTD: no context");
  }
  return NULL;
}

/* One call of the library: up to *n bytes; sets *n to what came. `whole`: `to`
 * takes the whole content. */
static const char *step_lz4(struct stream *s, void *to, size_t *n, bool whole) {
  LZ4F_decompressOptions_t options = {.stableDst = whole};
  size_t used = (size_t)s->left;
  const size_t more = LZ4F_decompress(s->context, to, n, s->at, &used, &options);
  if (LZ4F_isError(more)) return "its LZ4 frame is damaged";
  s->at += used, s->left -= (int64_t)used;
  s->ended = more == 0;
  return !s->ended && !used && !*n ? "its LZ4 frame ends early" : NULL;
}

static const char *step_zstd(struct stream *s, void *to, size_t *n) {
  ZSTD_outBuffer out = {to, *n, 0};
  ZSTD_inBuffer in = {s->at, (size_t)s->left, 0};
  const size_t more = ZSTD_decompressStream(s->context, &out, &in);
  if (ZSTD_isError(more)) return "its ZSTD frame is damaged";
  s->at += in.pos, s->left -= (int64_t)in.pos;
  *n = out.pos;
  s->ended = more == 0;
  return !s->ended && !in.pos && !*n ? "its ZSTD frame ends early" : NULL;
}

static const char *step(struct stream *s, void *to, size_t *n, bool whole) {
  return s->codec == CODEC_LZ4 ? step_lz4(s, to, n, whole) : step_zstd(s, to, n);
}

const char *stream_read(struct stream *s, void *to, int64_t bytes) {
  if (bytes > s->total - s->done) return "a buffer is too short for its rows";
  if (bytes == 0) return NULL;
  if (s->codec == CODEC_NONE) {
    memcpy(to, s->at, (size_t)bytes);
    s->at += bytes, s->left -= bytes, s->done += bytes;
    return NULL;
  }
  const bool whole = s->done == 0 && bytes == s->total;
  for (int64_t got = 0; got < bytes;) {
    if (s->ended) return "a compressed buffer holds less than it says";
    size_t n = (size_t)(bytes - got);
    const char *wrong = step(s, (char *)to + got, &n, whole);
    if (wrong) return wrong;
    got += (int64_t)n, s->done += (int64_t)n;
  }
  return NULL;
}

const char *stream_skip(struct stream *s, int64_t bytes) {
  char unused[SKIP];
  const char *wrong = NULL;
  if (bytes < 0 || bytes > s->total - s->done) return "a buffer is too short for its rows";
  if (bytes == 0) return NULL;
  if (s->codec == CODEC_NONE) {
    s->at += bytes, s->left -= bytes, s->done += bytes;
    return NULL;
  }
  for (int64_t n; bytes > 0 && !wrong; bytes -= n) {
    n = bytes < SKIP ? bytes : SKIP;
    wrong = stream_read(s, unused, n);
  }
  return wrong;
}

const char *stream_finish(struct stream *s) {
  const char *wrong = stream_skip(s, s->total - s->done);
  if (wrong || s->codec == CODEC_NONE) return wrong;
  while (!s->ended) {
    char unused;
    size_t n = 1;
    if ((wrong = step(s, &unused, &n, false))) return wrong;
    if (n) return "a compressed buffer holds more than it says";
  }
  /* Less than 8 zero bytes are padding; no second frame is that short. */
  for (; s->left && s->left < PREFIX && !*s->at; s->at++) s->left--;
  return s->left ? "a compressed buffer holds more than one frame" : NULL;
}

void stream_close(struct stream *s) {
  if (s->codec == CODEC_LZ4) LZ4F_freeDecompressionContext(s->context);
  if (s->codec == CODEC_ZSTD) ZSTD_freeDCtx(s->context);
  *s = (struct stream){0};
}
