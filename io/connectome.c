#include "connectome.h"
#include "mem.h"

void node_column_free(struct node_column *column) {
  for (int i = 0; i < column->n_labels; i++) mem_free(column->label[i]);
  mem_free(column->label), mem_free(column->code), mem_free(column->i64), mem_free(column->f64);
  mem_free(column->name);
  *column = (struct node_column){0};
}
