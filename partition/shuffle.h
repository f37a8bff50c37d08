/* The degree-preserving control: a random graph with the same degrees, by double-edge
 * swaps: a -> b, c -> d become c -> b, a -> d unless that makes a self-loop or repeats a pair.
 *
 * Swaps touch only the rows (targets) b and d. So the rows are dealt at random into groups that fit
 * a core's cache, each group swaps among its own edges, and the rows are dealt again: no random
 * access to memory, all threads busy, and the same result for any number of them, since groups do
 * not depend on it. Each deal is a symmetric chain on the same set of graphs, so the uniform
 * distribution stays the fixed one.
 *
 * With classes, b and d are of one class: every source keeps its number of
 * edges into each class. */
#ifndef FASCICLE_SHUFFLE_H
#define FASCICLE_SHUFFLE_H

#include "core/types.h"

struct shuffle_input {
  int64_t n_nodes;
  eidx n_edges;
  const uint32_t *target; /* [n_edges] edges of one target are adjacent, in any order of targets */
  uint32_t *source;       /* [n_edges] in and out; ascending within a target on the way in */
  const uint32_t *class_of; /* [n_nodes] 0 .. n_classes - 1, or NULL: all alike */
  int n_classes;
  uint64_t seed;
  int n_threads;
};

struct shuffle_facts {
  int rounds;    /* deals of the rows; 1.25 attempted swaps an edge in each */
  int64_t swaps; /* accepted */
  int64_t kept;  /* edges that are in the old graph too: chance meetings, and what could not move */
  int64_t self_loops; /* never moved, never made */
  int64_t repeated;   /* edges that repeat another's pair; never moved, never made */
};

/* At least 10 rounds and 10 accepted swaps an edge, then until a round lowers the share of kept
 * edges by less than 1e-3; 60 rounds at most, which only graphs with little freedom reach (no
 * swap at all in 10 rounds: that is the end). Known limit of all double-edge swaps: a few
 * directed graphs, such as a single ring of three, can only be turned into others by moves of
 * three edges. Checks itself: in- and out-degrees, outputs into each class, self-loops,
 * repeated pairs: a difference is a bug and DIEs. The result depends on the graph and the seed,
 * not on the order of targets. */
void shuffle_edges(const struct shuffle_input *input, struct shuffle_facts *facts);

/* The old position of the edge properties (counts, delays) that edge e gets: a random permutation
 * among edges whose targets are of one class. from [n_edges]. */
void shuffle_properties(const struct shuffle_input *input, eidx *from);

#endif
