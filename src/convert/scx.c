/* convert --edges FOLDER.scx: the portable artifact has its own nodes, signs and
 * delays; no rule applies. */
#include "build.h"
#include "convert.h"
#include "core/log.h"
#include "core/mem.h"
#include "graph/reorder.h"
#include "graph/scx.h"

#include <stdio.h>
#include <string.h>

static struct status only_scx(const struct convert_options *o) {
  const char *stray = o->nodes          ? "--nodes"
                      : o->transmitters ? "--transmitters"
                      : o->columns      ? "--columns"
                                        : NULL;
  if (!stray && o->signs) stray = "--signs";
  if (!stray && o->scale) stray = "--scale";
  if (!stray && o->delay) stray = "--delay";
  if (!stray && o->weight) stray = "--weight";
  if (!stray && o->min_weight) stray = "--min-weight";
  if (!stray && o->where.n) stray = "--where";
  if (!stray) return fine();
  return failure(EXIT_USAGE, "%s: an .scx folder is complete; %s does not apply", o->edges, stray);
}

static json_t *provenance(const struct convert_options *o, const struct connectome *g) {
  struct sha256 sha;
  char text[DIGEST_TEXT];
  sha256_init(&sha);
  sha256_add(&sha, g->scx->manifest, strlen(g->scx->manifest));
  sha256_end(&sha, text);
  return json_pack("{s:s, s:s, s:s, s:[{s:s, s:s, s:s}], s:{s:I, s:I}}", "program",
                   "fascicle convert", "version", BUILD_VERSION, "commit", BUILD_COMMIT, "inputs",
                   "role", "scx", "file", o->edges, "manifest_sha256", text, "result", "nodes",
                   (json_int_t)g->n_nodes, "edges", (json_int_t)g->n_edges);
}

static void report(const struct convert_options *o, const struct connectome *g,
                   const json_t *facts) {
  if (o->json)
    json_print(facts);
  else
    printf("%s: %lld nodes, %lld edges from %s\n", o->output, (long long)g->n_nodes,
           (long long)g->n_edges, o->edges);
}

struct status convert_scx(const struct convert_options *o) {
  TRY(only_scx(o));
  struct connectome g;
  TRY(scx_import(o->edges, &g));
  g.packed = o->packed;
  g.population = mem_string(o->population);
  json_t *facts = provenance(o, &g);
  g.provenance = json_line_kept(facts);
  struct status s = o->no_order ? fine() : reorder_graph(&g, (int)o->parts, REORDER_SEED);
  if (!s.code) s = connectome_write(&g, o->output, o->streamable, o->force);
  if (!s.code) report(o, &g, facts);
  json_decref(facts);
  connectome_free(&g);
  return s;
}
