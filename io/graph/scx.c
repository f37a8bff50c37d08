/* The group /scx of a graph that came from .scx. The 8-bit codes are stored as unsigned bytes. */
#include "inside.h"
#include "core/mem.h"

void put_scx(struct h5_file *h5, const struct connectome *g) {
  const struct scx_extras *x = g->scx;
  if (!x) return;
  h5_write_checked(h5, "/scx/external_id", F_U64, g->n_nodes, 1, x->external_id);
  h5_write_checked(h5, "/scx/type_code", F_U16, g->n_nodes, 1, x->type_code);
  h5_write_checked(h5, "/scx/transmitter_code", F_U8, g->n_nodes, 1, x->transmitter_code);
  h5_write_checked(h5, "/scx/side_code", F_U8, g->n_nodes, 1, x->side_code);
  h5_write_checked(h5, "/scx/place", F_U32, g->n_edges, 1, x->place);
  h5_write_texts(h5, "/scx/manifest", 1, (char *const *)&x->manifest);
}

/* Each place in the blocks belongs to one edge. */
static void check_places(struct connectome_file *file, const uint32_t *place, eidx n) {
  bool *taken = NEW_ZERO(bool, n);
  for (eidx e = 0; e < n; e++) {
    if (place[e] >= n || taken[place[e]])
      DIE(EXIT_INPUT, "%s: damaged: /scx/place, element %lld is %u; make the file again",
          file->h5.path, (long long)e, place[e]);
    taken[place[e]] = true;
  }
  mem_free(taken);
}

void load_scx(struct connectome_file *file, struct connectome *g) {
  struct h5_file *h5 = &file->h5;
  if (!h5_has(h5, "/scx")) return;
  const int64_t n = g->n_nodes;
  struct scx_extras *x = g->scx = NEW_ZERO(struct scx_extras, 1);
  h5_read(h5, "/scx/external_id", F_U64, 0, n, x->external_id = NEW(uint64_t, n));
  h5_read(h5, "/scx/type_code", F_U16, 0, n, x->type_code = NEW(uint16_t, n));
  h5_read(h5, "/scx/transmitter_code", F_U8, 0, n, x->transmitter_code = NEW(int8_t, n));
  h5_read(h5, "/scx/side_code", F_U8, 0, n, x->side_code = NEW(int8_t, n));
  h5_read(h5, "/scx/place", F_U32, 0, g->n_edges, x->place = NEW(uint32_t, g->n_edges));
  check_places(file, x->place, g->n_edges);
  char **text = h5_read_texts(h5, "/scx/manifest");
  x->manifest = mem_string(text[0] ? text[0] : "");
  texts_free(text);
}
