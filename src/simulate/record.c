/* Records spikes, potentials and variables of a rank in segments. */
#include "record.h"
#include "core/log.h"
#include "core/mem.h"
#include "trace/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is wanted ---- */

static uint8_t *mark_wanted(gidx n_global, const struct selection *spikes) {
  uint8_t *wanted = NEW_ZERO(uint8_t, n_global + 1);
  for (int64_t i = 0; i < spikes->n; i++) wanted[spikes->node[i]] = 1;
  return wanted;
}

struct row_of_id {
  nodeid node;
  lidx row;
};

static int by_node(const void *a, const void *b) {
  const nodeid x = ((const struct row_of_id *)a)->node, y = ((const struct row_of_id *)b)->node;
  return (x > y) - (x < y);
}

/* Own rows of the set, in ascending order of their node ids. */
static void choose_rows(struct lif_recorder *r, const struct selection *set) {
  const struct lif_net *net = r->run->setup.net;
  lidx *row;
  r->n_rows = lif_own_rows(net, set->n, set->node, &row);
  struct row_of_id *pair = NEW(struct row_of_id, r->n_rows);
  for (lidx i = 0; i < r->n_rows; i++) pair[i] = (struct row_of_id){net->id[row[i]], row[i]};
  if (r->n_rows) qsort(pair, (size_t)r->n_rows, sizeof *pair, by_node);
  r->row = NEW(lidx, r->n_rows), r->node = NEW(nodeid, r->n_rows);
  for (lidx i = 0; i < r->n_rows; i++) r->row[i] = pair[i].row, r->node[i] = pair[i].node;
  mem_free(pair), mem_free(row);
}

void recorder_open(const struct lif_run *run, const struct lif_config *config, const char *dir,
                   const char *provenance, const struct spikes_facts *facts,
                   struct lif_recorder *r) {
  *r = (struct lif_recorder){.run = run,
                             .dir = dir,
                             .provenance = provenance,
                             .linear = &config->linear,
                             .facts = *facts,
                             .every = config->recorded_every,
                             .n_variables = config->n_variables,
                             .variable = config->variable};
  if (!config->record_all) r->wanted = mark_wanted(run->setup.net->n_global, &config->spikes);
  if (r->every) choose_rows(r, &config->recorded);
}

void recorder_free(struct lif_recorder *r) {
  mem_free(r->wanted), mem_free(r->row), mem_free(r->node), mem_free(r->step), mem_free(r->spike);
  mem_free(r->count), mem_free(r->record_step), mem_free(r->potential);
  for (int v = 0; v < r->n_variables; v++) mem_free(r->value[v]);
  *r = (struct lif_recorder){0};
}

/* ---- recording ---- */

int64_t recorder_steps_left(const struct lif_recorder *r) {
  if (!r->every) return INT64_MAX;
  const int64_t step = r->run->step, due = (step + r->every - 1) / r->every * r->every;
  return due - step + 1;
}

/* Room for `more` elements behind `have`. */
static int64_t room_for(int64_t room, int64_t have, int64_t more) {
  return have + more <= room ? room : (have + more) * 3 / 2 + 64;
}

/* Of the spikes from `first` on, those of the set. */
static void keep_wanted(struct lif_recorder *r, int64_t first) {
  int64_t n = first;
  for (int64_t at = first; at < r->n; at++)
    if (r->wanted[r->spike[at]]) r->step[n] = r->step[at], r->spike[n++] = r->spike[at];
  r->n = n;
}

static void take_spikes(struct lif_recorder *r, const struct lif_batch *batch) {
  const struct lif_spikes *own = batch->own;
  const int64_t room = room_for(r->room, r->n, own->n), first = r->n;
  if (room > r->room) {
    r->step = mem_grow(r->step, room, sizeof *r->step);
    r->spike = mem_grow(r->spike, room, sizeof *r->spike);
    r->room = room;
  }
  lif_own_nodes(r->run, batch, r->spike + first);
  for (int k = 0; k < batch->n_steps; k++)
    for (int64_t at = own->step_ptr[k]; at < own->step_ptr[k + 1]; at++)
      r->step[first + at] = batch->step + k;
  r->n += own->n;
  if (r->wanted) keep_wanted(r, first);
}

static void take_counts(struct lif_recorder *r, const struct lif_batch *batch) {
  const int64_t room = room_for(r->count_room, r->n_counts, batch->n_steps);
  if (room > r->count_room)
    r->count = mem_grow(r->count, room, sizeof *r->count), r->count_room = room;
  for (int k = 0; k < batch->n_steps; k++)
    r->count[r->n_counts++] = batch->own->step_ptr[k + 1] - batch->own->step_ptr[k];
}

/* Room for one record more. */
static void make_room(struct lif_recorder *r) {
  const int64_t room = room_for(r->record_room, r->n_records, 1);
  if (room == r->record_room) return;
  r->record_step = mem_grow(r->record_step, room, sizeof *r->record_step);
  if (!r->n_variables)
    r->potential = mem_grow(r->potential, room * r->n_rows, sizeof *r->potential);
  for (int v = 0; v < r->n_variables; v++)
    r->value[v] = mem_grow(r->value[v], room * r->n_rows, sizeof **r->value);
  r->record_room = room;
}

/* In mV or pA; v with the potential of the resting neuron. */
static void real_values(const struct lif_recorder *r, int component, const int64_t *value,
                        float *real) {
  const struct lif_model_config *m = r->linear;
  for (lidx i = 0; i < r->n_rows; i++) {
    const double rest = component ? 0 : m->neuron[m->model.class_of[r->row[i]]].v_rest_mv;
    real[i] = (float)(rest + lif_units_real(m->kind, &m->units, component, value[i]));
  }
}

static void take_record(struct lif_recorder *r, int64_t step) {
  make_room(r);
  const int64_t at = r->n_records++ * r->n_rows;
  int64_t *value = NEW(int64_t, r->n_rows);
  r->record_step[r->n_records - 1] = step;
  for (int v = 0; v < r->n_variables; v++) {
    lif_values(r->run, r->variable[v], r->n_rows, r->row, value);
    real_values(r, r->variable[v], value, r->value[v] + at);
  }
  if (!r->n_variables) {
    lif_values(r->run, 0, r->n_rows, r->row, value);
    for (lidx i = 0; i < r->n_rows; i++) r->potential[at + i] = (int32_t)value[i];
  }
  mem_free(value);
}

static int64_t bytes_held(const struct lif_recorder *r) {
  const int64_t spike_bytes = 3 * 8; /* id, step and time in the file */
  const int64_t a_row = 4ll * (r->n_variables ? r->n_variables : 1);
  return r->n * spike_bytes + r->n_counts * 8 + r->n_records * (8 + r->n_rows * a_row);
}

int64_t recorder_take(struct lif_recorder *r, const struct lif_batch *batch) {
  take_spikes(r, batch);
  take_counts(r, batch);
  const int64_t last = r->run->step - 1;
  const bool whole = batch->fault.step == LIF_NO_FAULT && batch->n_steps > 0;
  if (whole && r->every && last % r->every == 0 && r->n_rows) take_record(r, last);
  if (bytes_held(r) >= RECORD_BYTES) recorder_close_segment(r);
  return batch->own->n;
}

/* ---- segments ---- */

static void name_variables(const struct lif_recorder *r, struct spikes_variable *variable) {
  for (int v = 0; v < r->n_variables; v++) {
    const struct lif_component c = lif_model_component(r->linear->kind, r->variable[v]);
    snprintf(variable[v].name, sizeof variable[v].name, "%s", c.name);
    snprintf(variable[v].unit, sizeof variable[v].unit, "%s", c.unit);
    variable[v].value = r->value[v];
  }
}

void recorder_close_segment(struct lif_recorder *r) {
  r->facts.last_step = r->facts.first_step + r->n_counts - 1;
  if (r->n_counts == 0 && r->facts.segment > 0) return;
  char path[FILE_PATH];
  struct spikes_variable variable[LIF_MOST_COMPONENTS];
  trace_segment_path(r->dir, r->facts.rank, r->facts.segment, path);
  name_variables(r, variable);
  const struct spikes_segment segment = {.n = r->n,
                                         .step = r->step,
                                         .node = r->spike,
                                         .count = r->count,
                                         .n_records = r->n_records,
                                         .n_recorded = r->n_rows,
                                         .record_step = r->record_step,
                                         .recorded = r->node,
                                         .potential = r->potential,
                                         .n_variables = r->n_variables,
                                         .variable = variable,
                                         .every = r->every};
  const struct status s = spikes_write(path, &r->facts, &segment, r->provenance);
  if (s.code) DIE(s.code, "%s", s.text);
  r->facts.first_step += r->n_counts, r->facts.segment++;
  r->n = r->n_counts = r->n_records = 0;
}

int64_t recorder_align(struct lif_recorder *r, const struct comm *comm) {
  comm_max_i64(comm, &r->facts.segment, 1);
  return r->facts.segment;
}
