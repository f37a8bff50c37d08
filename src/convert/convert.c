/* fascicle convert: tables into a graph artifact. */
#include "build.h"
#include "convert.h"
#include "io/files/files.h"
#include "core/log.h"
#include "core/mem.h"
#include "graph/scx.h"
#include "run/verbs.h"
#include "run/watchdog_option.h"

#include <inttypes.h>
#include <string.h>

static const struct usage usage = {
    .verb = "convert",
    .operands = "--edges FILE --output graph.h5",
    .about =
        "Tables into a graph artifact. Edges (and nodes, and transmitters) come from Feather "
        "(Arrow "
        "IPC: plain, LZ4, ZSTD) or delimited text (CSV, TSV, blanks; with or without a header). "
        "Columns "
        "are named, or given by position from 1. Ids are 64-bit numbers or names; outer blanks of "
        "names "
        "and labels do not count. Ranks share the reading of the edge table. Every row is kept or "
        "dropped for one stated reason; the account is printed and stored in the artifact.",
    .example = "  fascicle convert --edges connectome-weights.feather --nodes "
               "body-annotations.feather \\\n"
               "    --transmitters body-neurotransmitters.feather --node-rule superclass --output "
               "malecns.h5\n"
               "  fascicle convert --edges connections.csv --nodes classification.csv "
               "--transmitters neurons.csv "
               "\\\n"
               "    --output flywire.h5                                          # a row per "
               "neuropil: summed\n"
               "  fascicle convert --edges larva_edges.txt --output larva.h5     # pre post "
               "weight, no header\n"
               "  fascicle convert --edges celegans.csv --columns "
               "pre=Source,post=Target,weight=Weight \\\n"
               "    --where Type=chemical --output worm.h5\n"
               "  fascicle convert --edges artifact.scx --output graph.h5        # the portable "
               ".scx folder\n"
               "  A dense matrix (row = pre, column = post, negative = inhibitory) becomes an edge "
               "list by\n"
               "    awk '{for(j=1;j<=NF;j++) if($j) print NR, j, $j}' matrix.txt > edges.txt"};

struct convert_options convert_defaults(void) {
  return (struct convert_options){.population = "neurons",
                                  .ids = "auto",
                                  .duplicates = "sum",
                                  .self_loops = "keep",
                                  .isolated = "keep",
                                  .zero_weights = "keep",
                                  .repeated_ids = "refuse",
                                  .overflow = "refuse",
                                  .underflow = "refuse",
                                  .labels = "all",
                                  .parts = 64,
                                  .watchdog = WATCHDOG_CHOSEN};
}

static struct status parse(struct convert_options *o, int argc, char **argv) {
  const char *delimiters =
      "comma, tab, semicolon, pipe, blank or one character; found by itself otherwise";
  const struct option options[] = {
      {"edges", OPTION_TEXT, "FILE", "the edge table, or an .scx folder", &o->edges, 0, 0},
      {"nodes", OPTION_TEXT, "FILE", "the node table (annotations)", &o->nodes, 0, 0},
      {"transmitters", OPTION_TEXT, "FILE", "the transmitter table; without it every sign is +1",
       &o->transmitters, 0, 0},
      {"output", OPTION_TEXT, "FILE", "the graph artifact to write", &o->output, 0, 0},
      {"columns", OPTION_TEXT, "ROLE=COLUMN,..",
       "pre, post, weight, delay, kind of the edge table (body_pre, body_post, weight as in "
       "MaleCNS; "
       "bodyId_pre, bodyId_post as from neuPrint; pre_root_id, post_root_id, syn_count as in "
       "FlyWire; pre_pt_root_id, post_pt_root_id as from CAVE; pre, post; without a header 1, 2, "
       "3). "
       "#3 is the third column whatever its name",
       &o->columns, 0, 0},
      {"node-columns", OPTION_TEXT, "ROLE=COLUMN,..",
       "id, type, side, superclass, status, transmitter, and any further name for a column to keep "
       "(where "
       "the table has them: bodyId or root_id, type or primary_type, somaSide or side, superclass "
       "or "
       "super_class, status)",
       &o->node_columns, 0, 0},
      {"labels", OPTION_TEXT, "all|named",
       "further columns of the node table to keep: all that hold labels (text that repeats) or "
       "numbers, or only those named by --node-columns (all)",
       &o->labels, 0, 0},
      {"transmitter-columns", OPTION_TEXT, "ROLE=COLUMN,..",
       "id, label, and label2, label3 for rows whose label before is empty (body, bodyId or "
       "root_id; "
       "consensus_nt, consensusNt or nt_type)",
       &o->transmitter_columns, 0, 0},
      {"delimiter", OPTION_TEXT, "WORD", delimiters, &o->delimiter, 0, 0},
      {"node-delimiter", OPTION_TEXT, "WORD", "the same for the node table", &o->node_delimiter, 0,
       0},
      {"transmitter-delimiter", OPTION_TEXT, "WORD", "the same for the transmitter table",
       &o->transmitter_delimiter, 0, 0},
      {"header", OPTION_TEXT, "auto|yes|no",
       "is the first row of the edge table a header? auto: no, if all its fields are numbers",
       &o->header, 0, 0},
      {"node-header", OPTION_TEXT, "auto|yes|no", "the same for the node table", &o->node_header, 0,
       0},
      {"transmitter-header", OPTION_TEXT, "auto|yes|no", "the same for the transmitter table",
       &o->transmitter_header, 0, 0},
      {"ids", OPTION_TEXT, "auto|numbers|names", "what the ids are; auto looks at the first edge",
       &o->ids, 0, 0},
      {"node-rule", OPTION_TEXT, "endpoints|listed|superclass|traced",
       "which ids are nodes: ends of edges and all listed ones; listed in the node table; listed "
       "with a "
       "superclass; listed with status Traced (default: listed with --nodes, else endpoints)",
       &o->node_rule, 0, 0},
      {"signs", OPTION_TEXT, "NAME or FILE.json",
       "transmitter -> sign: shiu (default), soup, or a file of the same form", &o->signs, 0, 0},
      {"duplicates", OPTION_TEXT, "sum|keep|refuse",
       "repeated (pre, post) pairs of equal delay (sum)", &o->duplicates, 0, 0},
      {"self-loops", OPTION_TEXT, "keep|drop", "edges from a neuron to itself (keep)",
       &o->self_loops, 0, 0},
      {"isolated", OPTION_TEXT, "keep|drop", "nodes without any kept edge (keep)", &o->isolated, 0,
       0},
      {"zero-weights", OPTION_TEXT, "keep|drop", "rows of weight 0 (keep)", &o->zero_weights, 0, 0},
      {"repeated-ids", OPTION_TEXT, "refuse|first|last",
       "ids with several rows that differ in the chosen columns (refuse); identical repeats are "
       "counted",
       &o->repeated_ids, 0, 0},
      {"where", OPTION_LIST, "COLUMN=VALUE",
       "only such edge rows; repeated: values of one column are alternatives, columns must all "
       "agree",
       &o->where, 0, 0},
      {"merge-kinds", OPTION_FLAG, NULL, "take edges of several kinds as one graph",
       &o->merge_kinds, 0, 0},
      {"scale", OPTION_TEXT, "NUM[/DEN]",
       "impulse = weight x sign x NUM / DEN, rounded half to even (1); weights below 0 are taken "
       "as they are; with it weights may have fractions, such as 0.5",
       &o->scale, 0, 0},
      {"overflow", OPTION_TEXT, "refuse|saturate", "impulses that do not fit 16 bits (refuse)",
       &o->overflow, 0, 0},
      {"underflow", OPTION_TEXT, "refuse|keep", "weights that are not 0 and scale to 0 (refuse)",
       &o->underflow, 0, 0},
      {"delay", OPTION_INT, "N", "delay of every edge in steps (1)", &o->delay, 1, UINT16_MAX},
      {"weight", OPTION_INT, "N",
       "weight of every row, in place of a column: --weight 1 counts the rows of a table of "
       "synapses (so do tables of just two columns)",
       &o->weight, 1, INT32_MAX},
      {"min-weight", OPTION_INT, "N",
       "only edges of at least N, whatever their sign, after the rows of a pair were summed and "
       "before --scale",
       &o->min_weight, 1, INT32_MAX},
      {"population", OPTION_TEXT, "NAME", "name of the SONATA population (neurons)", &o->population,
       0, 0},
      {"parts", OPTION_INT, "N", "parts of the ordering, a power of two (64)", &o->parts, 1, 65536},
      {"no-order", OPTION_FLAG, NULL, "leave the rows in the order of the ids", &o->no_order, 0, 0},
      {"streamable", OPTION_FLAG, NULL, "also store the source-major copy that streaming reads",
       &o->streamable, 0, 0},
      {"packed", OPTION_FLAG, NULL,
       "deflate the edges: a quarter of the size, but not for libsonata's wheel", &o->packed, 0, 0},
      {"force", OPTION_FLAG, NULL, "replace an existing output", &o->force, 0, 0},
      watchdog_option(&o->watchdog),
      {"json", OPTION_FLAG, NULL, "the account as one JSON object on stdout", &o->json, 0, 0},
  };
  return options_parse(&usage, options, sizeof options / sizeof *options, argc, argv, NULL);
}

static struct status check(const struct convert_options *o) {
  if (!o->edges) return failure(EXIT_USAGE, "convert: --edges FILE is missing");
  if (!o->output) return failure(EXIT_USAGE, "convert: --output FILE is missing");
  if (!o->nodes && strcmp(o->labels, "all"))
    return failure(EXIT_USAGE, "--labels %s: it needs a node table: --nodes FILE", o->labels);
  if (!o->nodes && strcmp(o->node_rule, "endpoints"))
    return failure(EXIT_USAGE, "--node-rule %s: it needs a node table: --nodes FILE", o->node_rule);
  if (o->node_columns && !o->nodes)
    return failure(EXIT_USAGE, "--node-columns: it needs a node table: --nodes FILE");
  if (o->transmitter_columns && !o->transmitters)
    return failure(EXIT_USAGE, "--transmitter-columns: it needs a table: --transmitters FILE");
  if (o->parts & (o->parts - 1))
    return failure(EXIT_USAGE, "--parts %" PRId64 ": it must be a power of two", o->parts);
  const char *inputs[] = {o->edges, o->nodes, o->transmitters, o->signs};
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
    TRY(file_not_input(o->output, inputs[i]));
  return file_may_write(o->output, 0, o->force);
}

static struct status run(struct comm *world, int argc, char **argv) {
  struct convert_options o = convert_defaults();
  TRY(parse(&o, argc, argv));
  TRY(watchdog_begin(o.watchdog));
  if (!o.node_rule) o.node_rule = o.nodes ? "listed" : "endpoints";
  TRY(agree(world, world->rank == 0 ? check(&o) : fine()));
  if (!scx_is(o.edges)) return convert_tables(world, &o);
  watchdog_pause("converting an .scx folder");
  const struct status s = world->rank == 0 ? convert_scx(&o) : fine();
  comm_wait_for_all(world);
  watchdog_resume();
  return agree(world, s);
}

const struct verb verb_convert = {"convert",
                                  "tables (Feather, CSV, TSV, blanks) into a graph artifact", run};
