/* World ranks as a grid: parts x replicas. The ranks of one replica are neighbours in
 * world order and exchange halos; the ranks that own the same part in different
 * replicas sum their gradients. */
#ifndef FASCICLE_GRID_H
#define FASCICLE_GRID_H

#include "core/comm.h"
#include "contract/graph.h"

struct grid {
  int parts, replicas;
  int part, replica;        /* ours */
  enum halo_kind exchange;  /* between the ranks of a replica; HALO_AUTO by grid_init */
  struct comm replica_comm; /* the ranks of our replica; rank = part */
  struct comm part_comm;    /* the ranks with our part; rank = replica */
};

/* world size = parts x replicas, otherwise EXIT_USAGE that names both numbers. Agreed. The
 * transport of both groups is unset. */
struct status grid_init(const struct comm *world, int parts, struct grid *grid);
void grid_free(struct grid *grid);

#endif
