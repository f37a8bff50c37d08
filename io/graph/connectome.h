/* The graph artifact: one HDF5 file that is a SONATA nodes + edges file plus our own root groups.
 * The layout is in io/FORMAT.md. Written by one process, read by any number of ranks.
 *
 * Nodes are numbered canonically (node id = rank of the body id in ascending order, or of
 * the name in byte order). Edges are stored by (row of target, source node id); row =
 * node without an ordering. */
#ifndef FASCICLE_CONNECTOME_H
#define FASCICLE_CONNECTOME_H

#include "core/comm.h"
#include "core/digest.h"
#include "contract/lif.h"
#include "core/types.h"

/* One attribute of the nodes. Exactly one of code / i64 / f64 is set. */
struct node_column {
  char *name;   /* "type", "side", "superclass", "transmitter", "sign" ... */
  int n_labels; /* enumeration: label [n_labels] in byte order, code [n_nodes]; label 0 is ""
                   (missing) */
  char **label;
  uint32_t *code;
  int64_t *i64;
  double *f64;
};

/* What an imported .scx folder holds beyond the graph, kept in the group /scx so that `export
 * --format scx` gives the same bytes back. */
struct scx_extras {
  char *manifest;                       /* text of its manifest.json */
  uint64_t *external_id;                /* [n_nodes] in any order, repeats allowed */
  uint16_t *type_code;                  /* [n_nodes] */
  int8_t *transmitter_code, *side_code; /* [n_nodes] */
  uint32_t *place; /* [n_edges] where each edge stands in the folder's blocks */
};

/* A whole graph in memory, for the one process that writes it. */
struct connectome {
  char *population; /* SONATA population, "neurons" by default */
  int64_t n_nodes;
  eidx n_edges;
  uint64_t *body_id; /* [n_nodes] ascending; when ids are names: 0..n-1 */
  char **name;       /* [n_nodes] or NULL: names as ids, in byte order */
  int n_columns;
  struct node_column *column;

  /* Edges, in any order before connectome_sort: */
  uint32_t *source, *target; /* [n_edges] node ids */
  uint32_t *count;           /* [n_edges] synapse counts, or NULL */
  int16_t *impulse;          /* [n_edges] signed LIF weight */
  uint16_t *delay;           /* [n_edges] in steps, or NULL: all equal constant_delay */
  uint16_t constant_delay;

  /* Order; NULL when row = node. */
  uint32_t *row_of_node, *node_of_row;
  int n_blocks;
  int64_t *block; /* [n_blocks + 1] */
  char order_method[64];
  int order_seed;
  int64_t order_cut;

  bool packed; /* write the edge arrays deflated: about a quarter of the size, but libsonata's
                  wheel, which is built without zlib, cannot read them then */

  struct scx_extras *scx; /* NULL unless imported from .scx; such a graph has no counts */

  char *provenance; /* JSON text: program, inputs with size, SHA-256, rows kept and dropped,
                       options, rules */
};

void connectome_free(struct connectome *graph);

/* Sort edges by (row of target, source node id), ties by (delay, weight, count), so that any input
 * order gives the same file. */
void connectome_sort(struct connectome *graph);

/* Names that the format itself uses in group 0 of the nodes ("body_id",
 * "name" ..): not for columns. */
bool is_reserved_column(const char *name);

/* Write PATH (sorted first if need be): PATH.tmp, close, fsync, rename. With `streamable` also the
 * source-major copy /out. An existing file is refused unless `force`. Local: one rank. */
struct status connectome_write(struct connectome *graph, const char *path, bool streamable,
                               bool force);

/* The same graph as two files of SONATA's for simulators of point neurons: nodes with their types
 * and columns; edges with syn_weight (f64: impulse x weight), delay (f64, ms) and, where there are
 * counts, synapse_count. There is no nsyns: bmtk's PointNet would multiply by it, NEST would not.
 * The names are those of unfinished files, made or truncated. Local: one rank. */
struct sonata_form {
  const uint32_t *type; /* [n_nodes] node_type_id */
  double weight, dt_ms; /* of one count, of one step of a delay */
  int delay;            /* steps of every edge; 0: the graph's */
};
struct status connectome_write_sonata(struct connectome *graph, const struct sonata_form *form,
                                      const char *nodes, const char *edges);

/* ---- reading ---- */

struct connectome_facts {
  char population[128];
  int64_t n_nodes;
  eidx n_edges;
  bool ordered, streamable, packed, has_counts, has_names;
  int n_blocks;
  int min_delay, max_delay; /* 0, 0 without edges */
  bool constant_delay;
  /* largest sum of |impulse| over one neuron's in-edges; below 2^31 any
   * sums of arrivals fit int32 */
  int64_t max_in_impulse;
  bool parallel_edges; /* some (pre, post) occurs twice */
  char graph_digest[DIGEST_TEXT], order_digest[DIGEST_TEXT];
};

struct connectome_file;

/* Every rank opens the file; format, version, sizes and digest attributes are checked. Agreed:
 * EXIT_INPUT names the file and what is wrong. */
struct status connectome_open(const struct comm *comm, const char *path,
                              struct connectome_file **file);
const struct connectome_facts *connectome_facts(const struct connectome_file *file);
void connectome_close(struct connectome_file *file);

/* Each of the following reads a contiguous range into the caller's array; local, independent; a
 * failed read is fatal. Values that would break the caller (a node id out of range, a row_ptr that
 * is not ascending) are fatal with EXIT_INPUT. */
void connectome_row_ptr(struct connectome_file *file, gidx first, int64_t n, eidx *row_ptr);
void connectome_row_of_node(struct connectome_file *file,
                            uint32_t *row_of_node); /* [n_nodes]; identity if unordered */
void connectome_node_of_row(struct connectome_file *file, uint32_t *node_of_row); /* [n_nodes] */
void connectome_blocks(struct connectome_file *file, int64_t *block); /* [n_blocks + 1] */
void connectome_sources(struct connectome_file *file, eidx first, eidx n, uint32_t *source);
void connectome_targets(struct connectome_file *file, eidx first, eidx n, uint32_t *target);
void connectome_impulses(struct connectome_file *file, eidx first, eidx n, int16_t *impulse);
void connectome_delays(struct connectome_file *file, eidx first, eidx n, uint16_t *delay);
void connectome_counts(struct connectome_file *file, eidx first, eidx n, uint32_t *count);
/* The source-major copy, only when `streamable`: ptr [n_nodes + 1] by row of source; the edges of
 * one source ascend by row of target. */
void connectome_out_ptr(struct connectome_file *file, gidx first, int64_t n, eidx *ptr);
void connectome_out(struct connectome_file *file, eidx first, eidx n, struct lif_edge *edge);
/* Where its edges stand, for readers of their own: the byte at which the array of struct lif_edge
 * (target: the row in the whole graph) begins, and a descriptor to close. The values are those of
 * the file: their user checks them. */
int64_t connectome_out_place(struct connectome_file *file, int *descriptor);
const char *connectome_path(const struct connectome_file *file);
void connectome_body_ids(struct connectome_file *file, gidx first, int64_t n, uint64_t *body_id);
/* All names [n_nodes]; free each and the array with mem_free. Only when has_names. */
char **connectome_names(struct connectome_file *file);
/* One column by name, whole; column->name NULL when there is none. Free with node_column_free. */
void connectome_column(struct connectome_file *file, const char *name, struct node_column *column);
/* Whether a column holds labels, not numbers. */
bool connectome_has_labels(struct connectome_file *file, const char *name);
void node_column_free(struct node_column *column);
/* Names of all columns; NULL-terminated array of counted strings. */
char **connectome_column_names(struct connectome_file *file);
char *connectome_provenance(struct connectome_file *file); /* mem_free it */

/* Read everything back into memory, on one rank (order, export, shuffle). */
struct status connectome_load(const char *path, struct connectome *graph);

/* Verify the stored graph digest: each rank hashes its share of the edges. Collective. */
struct status connectome_verify(const struct comm *comm, struct connectome_file *file,
                                const char *path);

#endif
