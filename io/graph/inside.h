/* What the connectome_*.c files share. */
#ifndef FASCICLE_CONNECTOME_INSIDE_H
#define FASCICLE_CONNECTOME_INSIDE_H

#include "connectome.h"
#include "core/log.h"
#include "io/hdf5/h5.h"

#define CONNECTOME_FORMAT "fascicle graph"
enum { CONNECTOME_VERSION = 1, CONNECTOME_NAME = 400 };

/* /out/edge in words of 32 bits a row: as struct lif_edge lies in memory. */
enum { CONNECTOME_OUT_WIDTH = 2 };
_Static_assert(sizeof(struct lif_edge) == CONNECTOME_OUT_WIDTH * sizeof(uint32_t),
               "two words an edge");

struct connectome_file {
  struct h5_file h5;
  struct connectome_facts facts;
};

/* "/nodes/POPULATION/NAME", "/nodes/POPULATION/0/NAME",
 * "/edges/P__P__chemical/NAME"; returns `to`. */
char *node_path(const char *population, const char *name, char to[CONNECTOME_NAME]);
char *edge_path(const char *population, const char *name, char to[CONNECTOME_NAME]);

/* The sum of edge_hash over n edges; delay NULL: all have constant_delay. By all threads. */
struct sum128 edges_sum(eidx n, const uint32_t *source, const uint32_t *target,
                        const int16_t *impulse, const uint16_t *delay, uint16_t constant_delay);

/* SHA-256 over, as little-endian 64-bit words: number of nodes, the ids, low and high word of the
 * sum. Ids: body ids as words; names as their bytes, each with its final 0. */
void graph_digest(int64_t n_nodes, const uint64_t *body_id, char *const *name, struct sum128 edges,
                  char text[DIGEST_TEXT]);

/* SHA-256 over: number of nodes and of blocks as 64-bit words, node_of_row as 32-bit words, blocks
 * as 64-bit words. NULL node_of_row: the identity. */
void order_digest(int64_t n_nodes, const uint32_t *node_of_row, int n_blocks, const int64_t *block,
                  char text[DIGEST_TEXT]);

/* write.c: the population's nodes; type [n_nodes] of each, or NULL: all of one, and then a column
 * says that they are point neurons. Where edges begin and end, with what all edges have in common;
 * which of them end at a node: row_ptr [n_nodes + 1]. */
void put_nodes(struct h5_file *h5, const char *population, const struct connectome *graph,
               const uint32_t *type);
void put_ends(struct h5_file *h5, const char *population, const struct connectome *graph,
              struct progress *progress);
void put_index(struct h5_file *h5, const char *population, const struct connectome *graph,
               const eidx *row_ptr);

/* The group /scx: written where the graph has extras; read into graph->scx where
 * the file has the group. */
void put_scx(struct h5_file *h5, const struct connectome *graph);
void load_scx(struct connectome_file *file, struct connectome *graph);

/* Open on one rank; the part of connectome_open before the ranks agree. */
struct status connectome_open_alone(const char *path, struct connectome_file **file);

#endif
