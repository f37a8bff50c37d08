/* The answer of `fascicle plan`, for people and for machines. */
#include "plan.h"

#include <stdio.h>

static const char *exchange_name(const struct plan_graph *g) {
  return g->parts == 1 ? "none" : g->all ? "all-gather" : "halo";
}

static json_t *answer_json(const struct plan_request *r, const struct plan_answer *a) {
  json_t *items = json_object();
  for (int i = 0; i < a->memory.n; i++)
    json_object_set_new(items, a->memory.item[i].name, json_integer(a->memory.item[i].bytes));
  const struct plan_share *s = plan_largest(&a->graph);
  return json_pack(
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
      (json_int_t)a->limit, "fits", plan_fits(r, a), "host_total_bytes", (json_int_t)a->host.total,
      "host_bytes_per_step", (json_int_t)a->step.bytes_host, "network_bytes_per_step",
      (json_int_t)a->step.bytes_network, "compute_seconds", a->step.compute, "exchange_seconds",
      a->step.exchange, "window_seconds", a->step.window, "gradient_seconds", a->step.gradients,
      "step_seconds", a->step.total, "machine", r->machine.name, "transport", a->layout.host->name);
}

static void print_answer(const struct plan_request *r, const struct plan_answer *a) {
  const struct plan_share *s = plan_largest(&a->graph);
  printf("%s, %lld neurons, %lld edges%s: %d part%s x %d replica%s\n", r->kind,
         (long long)a->graph.n_nodes, (long long)a->graph.n_edges,
         a->graph.real ? "" : " (estimated: sources at random)", a->graph.parts,
         a->graph.parts > 1 ? "s" : "", (int)r->ranks / a->graph.parts,
         r->ranks / a->graph.parts > 1 ? "s" : "");
  printf(
      "  largest part: %lld rows, %lld halo rows, %lld edges from own rows, %lld from the halo\n",
      (long long)s->n_own, (long long)s->n_halo, (long long)s->near, (long long)s->far);
  for (int i = 0; i < a->memory.n; i++)
    printf("  %-54s %14lld bytes\n", a->memory.item[i].name, (long long)a->memory.item[i].bytes);
  printf("  %-54s %14lld bytes, %.2f of %.2f GiB\n", "total of a rank", (long long)a->memory.total,
         (double)a->memory.total / 0x1p30, (double)a->limit / 0x1p30);
  for (int i = 0; i < a->host.n; i++)
    printf("  on the host: %-41s %14lld bytes\n", a->host.item[i].name,
           (long long)a->host.item[i].bytes);
  if (a->streamed && a->host.n)
    printf("  edges streamed from host memory: %.0f %% of them are read from there each time\n",
           100 * a->host_edges);
  else if (a->streamed)
    printf("  edges streamed from the file; what is not held comes from the page cache while that "
           "has it\n");
  if (a->graph.parts > 1 && plan_trains(r))
    printf("  exchange: %s, %.1f %% of an all-gather needed\n", exchange_name(&a->graph),
           100 * (double)a->graph.needed / ((a->graph.parts - 1) * (double)a->graph.n_nodes));
  printf("  a step: %.4g s (work %.4g s; exchanges alone %.4g s); a rank receives %.4g MB from its "
         "host, "
         "%.4g MB by network\n",
         a->step.total, a->step.compute, a->step.exchange, (double)a->step.bytes_host / 1e6,
         (double)a->step.bytes_network / 1e6);
  printf("  machine: %s; links %s and network\n", r->machine.about, a->layout.host->name);
}

void plan_answer_print(const struct plan_request *r, const struct plan_answer *a) {
  if (!r->as_json) {
    print_answer(r, a);
    return;
  }
  json_t *facts = answer_json(r, a);
  json_print(facts);
  json_decref(facts);
}
