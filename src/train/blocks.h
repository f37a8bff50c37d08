/* How the blocks of parameters stand in a checkpoint; shared by writing and reading. */
#ifndef FASCICLE_TRAIN_BLOCKS_H
#define FASCICLE_TRAIN_BLOCKS_H

#include "io/hdf5/fields.h"
#include "rnn.h"

#define NODE_OF_ROW   "order/node_of_row"
#define VOCABULARY    "text/vocabulary"
#define CARRIED_STATE "state/carried"

enum block_place { BY_EDGE, BY_NODE, BY_INPUT, BY_OUTPUT, SHARED };
struct block_form {
  const char *name;
  enum block_place place;
  const char *about;
};
extern const struct block_form block_forms[MODEL_BLOCKS];

/* kind 0: parameters, 1 and 2: moments, "_m" and "_v" behind the name. */
enum model_array block_array(int kind);

/* The field of this rank's rows, without data. `name` must outlive it. */
enum { BLOCK_NAME = 64 };
struct field block_field(const struct rnn *rnn, int block, int kind, char name[BLOCK_NAME]);

/* This part's edge values from the order of the parameters into that of the file, and back. */
void edges_to_file(const struct network *network, const float *from, float *to);
void edges_from_file(const struct network *network, const float *from, float *to);

#endif
