/* Ranks split into replicas of equally many parts. */
#include "grid.h"

struct status grid_init(const struct comm *world, int parts, struct grid *grid) {
  if (parts < 1 || world->size % parts)
    return failure(EXIT_USAGE, "--parts %d: it must divide the number of ranks, %d", parts,
                   world->size);
  *grid = (struct grid){.parts = parts,
                        .replicas = world->size / parts,
                        .part = world->rank % parts,
                        .replica = world->rank / parts};
  grid->replica_comm = comm_split(world, grid->replica, grid->part);
  grid->part_comm = comm_split(world, grid->part, grid->replica);
  return fine();
}

void grid_free(struct grid *grid) {
  comm_free(&grid->replica_comm);
  comm_free(&grid->part_comm);
  *grid = (struct grid){0};
}
