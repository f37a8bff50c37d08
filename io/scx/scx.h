/* The portable .scx artifact: a folder of manifest.json, neurons.bin and blocks/block_NNNNN.scb,
 * all little-endian.
 *
 *   block    "SCB1", u32 version 1, u32 source_start, u32 source_count S, u32 edge_count E,
 *            u32 offsets[S + 1], u32 targets[E], i16 weights[E], u16 delays[E]; size exactly
 *            20 + 4 (S + 1) + 8 E
 *   neurons  n records of 16 bytes: u32 index (= position), u64 external id, u16 type code,
 *            i8 transmitter code, i8 side code
 *
 * Everything in it is checked when it is read: keys, types, sizes, SHA-256, magic, offsets,
 * targets, delays, and that no name leaves the folder. */
#ifndef FASCICLE_SCX_H
#define FASCICLE_SCX_H

#include "core/fail.h"
#include "core/types.h"

struct scx_block {
  char *filename; /* relative to the folder */
  int64_t source_start, source_count, edge_count;
};

struct scx {
  char *manifest; /* the text of manifest.json, byte for byte; NULL: made by scx_write */
  char *dataset_id;
  int64_t n_neurons, n_edges;
  /* neurons.bin, [n_neurons] each */
  uint64_t *external_id;
  uint16_t *type_code;
  int8_t *transmitter_code, *side_code;
  /* edges in stored order: by source; [n_edges] each */
  uint32_t *source, *target;
  int16_t *weight;
  uint16_t *delay;
  int n_blocks;
  struct scx_block *block;
};

void scx_free(struct scx *scx);

/* Local. EXIT_INPUT names the file and what is wrong. */
struct status scx_read(const char *folder, struct scx *scx);

/* Write FOLDER as FOLDER.tmp, renamed when complete; an existing one is refused (EXIT_OUTPUT).
 * Edges must be sorted by source. With a manifest, its blocks are written and must give the
 * checksums that it states, else EXIT_RUNTIME; without one, blocks of `block_size` sources and
 * a new manifest. Local. */
struct status scx_write(const struct scx *scx, int64_t block_size, const char *folder);

#endif
