/* ranks: 1 2 */
/* A conversion gives all its memory back, when it succeeds and when it is refused. */
#include "check.h"
#include "convert/convert.h"
#include "core/mem.h"

#include <unistd.h>

static const char *write_file(const char *folder, const char *name, const char *text) {
  static char path[5][256];
  static int turn;
  char *to = path[turn++ % 5];
  snprintf(to, sizeof path[0], "%s/%s", folder, name);
  if (world.rank > 0) return to;
  FILE *file = fopen(to, "w");
  fputs(text, file);
  fclose(file);
  return to;
}

static void convert_once(const char *folder, const char *edges, const char *duplicates,
                         int wanted) {
  struct convert_options o = convert_defaults();
  o.output = write_file(folder, "graph.h5", "");
  o.edges = write_file(folder, "edges", edges);
  o.nodes = write_file(folder, "nodes", "bodyId,type,status\n1,A,Traced\n2,B,Traced\n3,C,\n");
  o.transmitters = write_file(folder, "labels", "body,consensus_nt\n1,gaba\n2,glutamate\n9,gaba\n");
  o.signs = write_file(folder, "signs.json",
                       "{\"signs\": {\"gaba\": -1, \"glutamate\": 1, \"missing\": \"exclude\"}}");
  o.node_rule = "listed", o.duplicates = duplicates, o.parts = 2, o.force = o.json = true;
  comm_barrier(&world);
  CHECK_EQ(convert_tables(&world, &o).code, wanted);
  CHECK_EQ(mem_held(), 0);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  char folder[] = "/tmp/fascicle_convert_XXXXXX", path[256];
  if (world.rank == 0) CHECK(mkdtemp(folder) != NULL);
  comm_share(&world, folder, sizeof folder, 0);
  convert_once(folder, "body_pre,body_post,weight\n1,2,3\n1,2,4\n2,3,1\n3,1,1\n9,1,1\n", "sum", 0);
  convert_once(folder, "body_pre,body_post,weight\n1,2,3\n1,2,4\n", "refuse", EXIT_INPUT);
  convert_once(folder, "body_pre,body_post,weight\n1,2,3\n1,2,x\n", "sum", EXIT_INPUT);
  convert_once(folder, "body_pre,body_post,weight\n1,2,99999\n", "sum", EXIT_INPUT);
  convert_once(folder, "1 2 3\n", "sum", 0);
  static const char *const names[] = {"edges", "nodes", "labels", "graph.h5", "signs.json"};
  for (int i = 0; i < 5; i++) snprintf(path, sizeof path, "%s/%s", folder, names[i]), unlink(path);
  if (world.rank == 0) rmdir(folder);
  return test_end();
}
