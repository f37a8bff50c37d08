/* The valid files that the targets begin with, made by the program itself. */
#ifndef FASCICLE_FUZZ_BASE_H
#define FASCICLE_FUZZ_BASE_H

#include "fuzz_run.h"

/* base0.h5 .. base3.h5: ids as numbers, labels, signs, ordered, streamable; names, not ordered;
 * packed, delays; from .scx. Also the tables edges.csv, nodes.csv, named.csv and signs.json. */
enum { N_BASES = 4 };
void base_graphs(void);
/* lif.json (all kinds of stimuli and recordings), model.json (a model with variables recorded) and
 * text.txt. */
void base_settings(void);

/* The words of a small training run on GRAPH from text.txt into run/, for
 * fuzz_verb; `words`: the rest. */
#define BASE_TRAIN(graph, ...)                                                                     \
  graph, "--text", "text.txt", "--output", "run", "--watchdog", "0", "--memory", "0.1",            \
      "--config", "train.json", __VA_ARGS__, NULL
/* The same for a simulation with lif.json. */
#define BASE_SIMULATE(graph, ...)                                                                  \
  graph, "--config", "lif.json", "--output", "run", "--watchdog", "0", "--memory", "0.1",          \
      __VA_ARGS__, NULL

#endif
