/* Prints the answer of `fascicle plan`, for people and for machines. */
#include "plan.h"
#include "core/units.h"

#include <stdio.h>

static const char *exchange_name(const struct plan_graph *g) {
  return g->parts == 1 ? "none" : g->all ? "all-gather" : "halo";
}

/* Seconds that a second of simulated time takes. */
static double real_time(const struct plan_request *r, const struct plan_answer *a) {
  return a->step.total / (r->dt_ms / 1000);
}

static json_t *answer_json(const struct plan_request *r, const struct plan_answer *a, bool fits) {
  json_t *items = json_object();
  for (int i = 0; i < a->memory.n; i++)
    json_object_set_new(items, a->memory.item[i].name, json_integer(a->memory.item[i].bytes));
  const struct plan_share *s = plan_largest(&a->graph);
  json_t *facts = json_pack(
      "{s:s, s:s, s:I, s:i, s:i, s:i, s:I, s:I, s:b, s:s, s:I, s:{s:I, s:I, s:I, s:I, s:I, s:i}, "
      "s:o, s:I, "
      "s:I, s:b, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:s, s:s}",
      "job", r->kind, "residency", a->streamed ? "streamed" : "resident", "ranks",
      (json_int_t)r->ranks, "parts", a->graph.parts, "replicas", (int)r->ranks / a->graph.parts,
      "gpus_per_host", r->layout.ranks_per_host, "nodes", (json_int_t)a->graph.n_nodes, "edges",
      (json_int_t)a->graph.n_edges, "counted", a->graph.real, "exchange", exchange_name(&a->graph),
      "halo_rows_needed", (json_int_t)a->graph.needed, "largest_part", "rows", (json_int_t)s->n_own,
      "halo_rows", (json_int_t)s->n_halo, "halo_rows_of_host", (json_int_t)s->n_halo_host,
      "near_edges", (json_int_t)s->near, "far_edges", (json_int_t)s->far, "peers", s->peers,
      "bytes", items, "total_bytes", (json_int_t)a->memory.total, "limit_bytes",
      (json_int_t)a->limit, "fits", fits, "host_total_bytes", (json_int_t)a->host.total,
      "host_bytes_per_step", (json_int_t)a->step.bytes_host, "network_bytes_per_step",
      (json_int_t)a->step.bytes_network, "compute_seconds", a->step.compute, "exchange_seconds",
      a->step.exchange, "window_seconds", a->step.window, "gradient_seconds", a->step.gradients,
      "step_seconds", a->step.total, "machine", r->machine.name, "transport", a->layout.host->name);
  json_object_set_new(facts, "model", json_string(r->model ? r->model : "lif_shift"));
  json_object_set_new(facts, "steps", json_integer(a->steps));
  json_object_set_new(facts, "run_seconds", json_real(a->step.total * (double)a->steps));
  if (!plan_trains(r)) json_object_set_new(facts, "real_time_factor", json_real(real_time(r, a)));
  return facts;
}

static const char *plural(int64_t n) {
  return n == 1 ? "" : "s";
}

static void print_graph(const struct plan_request *r, const struct plan_answer *a) {
  char nodes[UNITS_TEXT], edges[UNITS_TEXT], own[UNITS_TEXT], halo[UNITS_TEXT], near[UNITS_TEXT],
      far[UNITS_TEXT];
  const struct plan_share *s = plan_largest(&a->graph);
  const int replicas = (int)r->ranks / a->graph.parts;
  printf("%s, %s neurons, %s edges%s: %d part%s x %d replica%s\n", r->kind,
         units_count(a->graph.n_nodes, nodes), units_count(a->graph.n_edges, edges),
         a->graph.real ? "" : " (estimated: sources at random)", a->graph.parts,
         plural(a->graph.parts), replicas, plural(replicas));
  printf("  largest part: %s rows, %s halo rows, %s edges from own rows, %s from the halo\n",
         units_count(s->n_own, own), units_count(s->n_halo, halo), units_count(s->near, near),
         units_count(s->far, far));
}

static void print_item(const char *name, int64_t bytes, const char *more) {
  char text[UNITS_TEXT];
  printf("  %-58s %10s%s\n", name, units_memory(bytes, text), more);
}

static void print_memory(const struct plan_answer *a) {
  char limit[UNITS_TEXT], of[UNITS_TEXT + 8];
  for (int i = 0; i < a->memory.n; i++)
    print_item(a->memory.item[i].name, a->memory.item[i].bytes, "");
  snprintf(of, sizeof of, " of %s", units_memory(a->limit, limit));
  print_item("a rank, all together", a->memory.total, of);
  for (int i = 0; i < a->host.n; i++) {
    char name[80];
    snprintf(name, sizeof name, "on the host: %s", a->host.item[i].name);
    print_item(name, a->host.item[i].bytes, "");
  }
  if (a->streamed && a->host.n)
    printf("  edges streamed from host memory: %.0f %% of them are read from there each time\n",
           100 * a->host_edges);
  else if (a->streamed)
    printf("  edges streamed from the file; what is not held comes from the page cache while that "
           "has it\n");
}

static void print_step(const struct plan_request *r, const struct plan_answer *a) {
  char total[UNITS_TEXT], work[UNITS_TEXT], exchange[UNITS_TEXT], near[UNITS_TEXT], far[UNITS_TEXT];
  if (a->graph.parts > 1 && plan_trains(r))
    printf("  exchange: %s, %.1f %% of an all-gather needed\n", exchange_name(&a->graph),
           100 * (double)a->graph.needed / ((a->graph.parts - 1) * (double)a->graph.n_nodes));
  printf("  a step: %s (work %s; exchanges alone %s)", units_time(a->step.total, total),
         units_time(a->step.compute, work), units_time(a->step.exchange, exchange));
  if (r->ranks > 1)
    printf("; a rank receives %s from its host, %s by network",
           units_bytes(a->step.bytes_host, near), units_bytes(a->step.bytes_network, far));
  printf("\n");
}

static void print_run(const struct plan_request *r, const struct plan_answer *a) {
  char steps[UNITS_TEXT], time[UNITS_TEXT], simulated[UNITS_TEXT];
  printf("  the run: %s steps take %s", units_count(a->steps, steps),
         units_time(a->step.total * (double)a->steps, time));
  if (!plan_trains(r))
    printf(" for %s of simulated time, %.3g times as fast as real time",
           units_time((double)a->steps * r->dt_ms / 1000, simulated), 1 / real_time(r, a));
  printf("; start%s and checkpoints not counted\n", plan_trains(r) ? ", evaluations" : "");
}

static void print_answer(const struct plan_request *r, const struct plan_answer *a) {
  print_graph(r, a);
  print_memory(a);
  print_step(r, a);
  print_run(r, a);
  printf("  machine: %s; links %s and network\n", r->machine.about, a->layout.host->name);
}

void plan_answer_print(const struct plan_request *r, const struct plan_answer *a, bool fits) {
  if (!r->as_json) {
    print_answer(r, a);
    return;
  }
  json_t *facts = answer_json(r, a, fits);
  json_print(facts);
  json_decref(facts);
}
