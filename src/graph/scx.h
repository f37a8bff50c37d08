/* Between the portable .scx artifact and a graph. Node id = index in the folder. Body id = external
 * id where those ascend, otherwise the index. The codes of neurons.bin become the columns
 * "type_code", "sign" and "side_code". */
#ifndef FASCICLE_SCX_GRAPH_H
#define FASCICLE_SCX_GRAPH_H

#include "io/graph/connectome.h"

/* True when PATH is a folder that holds a manifest.json. */
bool scx_is(const char *path);

/* Local. The graph keeps what export needs to give the same bytes back. */
struct status scx_import(const char *path, struct connectome *graph);

/* Local. A graph that was imported gives its folder back byte for byte; another one gets blocks of
 * `block_size` sources, its edges by (pre, post, delay, weight). An existing folder is refused. */
struct status scx_export(const struct connectome *graph, int64_t block_size, const char *path);

#endif
