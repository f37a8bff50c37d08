/* What is said about a conversion: provenance, warnings, the account. */
#include "build.h"
#include "conversion.h"
#include "core/log.h"

#include <stdio.h>
#include <string.h>

static json_t *rules_json(const struct conversion *w) {
  const struct convert_options *o = w->o;
  json_t *rules = json_pack(
      "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:s, s:I, s:I}", "node_rule",
      o->node_rule, "ids", w->nodes.ids.names ? "names" : "numbers", "duplicates", o->duplicates,
      "self_loops", o->self_loops, "isolated", o->isolated, "zero_weights", o->zero_weights,
      "repeated_ids", o->repeated_ids, "labels_and_names", "outer blanks do not count",
      "merge_kinds", o->merge_kinds, "overflow", o->overflow, "underflow", o->underflow,
      "scale_num", (json_int_t)w->scale.num, "scale_den", (json_int_t)w->scale.den);
  json_t *where = json_array();
  for (int i = 0; i < o->where.n; i++) json_array_append_new(where, json_string(o->where.item[i]));
  json_object_set_new(rules, "where", where);
  if (!w->graph.delay)
    json_object_set_new(rules, "delay_steps", json_integer(w->graph.constant_delay));
  if (w->edges.row_weight)
    json_object_set_new(rules, "weight_of_a_row", json_integer(w->edges.row_weight));
  if (w->edges.places) json_object_set_new(rules, "decimal_places", json_integer(w->edges.places));
  if (o->min_weight) json_object_set_new(rules, "min_weight", json_integer(o->min_weight));
  if (w->has_signs) {
    json_object_set(rules, "signs", w->signs.json);
    json_object_set_new(rules, "signs_sha256", json_string(w->signs.sha256));
  }
  return rules;
}

/* Where the edges have their signs from. */
static const char *signs_from(const struct conversion *w) {
  return w->has_signs ? "transmitters" : w->account.negative ? "weights" : "none";
}

/* A sum of weights, which lies in units of 10^-places. */
static json_t *sum_json(const struct conversion *w, int64_t sum) {
  const int64_t unit = scale_unit(w->edges.places);
  return unit == 1 ? json_integer(sum) : json_real((double)sum / (double)unit);
}

static json_t *result_json(const struct conversion *w) {
  const struct account *a = &w->account;
  json_t *r = json_pack(
      "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "nodes", (json_int_t)w->graph.n_nodes,
      "edges", (json_int_t)w->graph.n_edges, "isolated_nodes", (json_int_t)a->isolated,
      "self_loops", (json_int_t)a->self_loops, "merged_pairs", (json_int_t)a->merged_pairs,
      "merged_rows", (json_int_t)a->merged_rows, "parallel_edges", (json_int_t)a->parallel_edges,
      "saturated", (json_int_t)a->saturated, "scaled_to_zero", (json_int_t)a->scaled_to_zero);
  json_object_set_new(r, "weight_sum", sum_json(w, a->weight_sum));
  json_object_set_new(r, "excitatory_edges", json_integer(a->above_0));
  json_object_set_new(r, "inhibitory_edges", json_integer(a->below_0));
  json_object_set_new(r, "zero_edges", json_integer(a->at_0));
  json_object_set_new(r, "signs_from", json_string(signs_from(w)));
  if (w->o->min_weight) {
    json_object_set_new(r, "below_min_weight", json_integer(a->weak));
    json_object_set_new(r, "below_min_weight_sum", sum_json(w, a->weak_weight));
  }
  if (a->nodes_by_transmitter) json_object_set(r, "nodes_by_transmitter", a->nodes_by_transmitter);
  if (a->edges_by_transmitter) json_object_set(r, "edges_by_transmitter", a->edges_by_transmitter);
  return r;
}

json_t *conversion_facts(const struct conversion *w) {
  return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "program", "fascicle convert", "version",
                   BUILD_VERSION, "commit", BUILD_COMMIT, "inputs",
                   account_inputs_json(&w->account), "rules", rules_json(w), "result",
                   result_json(w));
}

static void warn(const struct conversion *w) {
  const int64_t mixed = ids_mixed_blanks(&w->nodes.ids);
  if (mixed)
    log_warning("%lld names occur with different outer blanks and were taken as one each",
                (long long)mixed);
  if (w->account.saturated)
    log_warning("%lld impulses were saturated", (long long)w->account.saturated);
  if (w->account.scaled_to_zero)
    log_warning("%lld weights that are not 0 scaled to 0", (long long)w->account.scaled_to_zero);
  if (w->account.negative && w->sign)
    log_warning(
        "%lld weights are below 0 and were multiplied by the sign of their transmitter as well",
        (long long)w->account.negative);
  if (w->graph.n_edges == 0) log_warning("the graph has no edges");
}

static void print_by_transmitter(const char *what, const json_t *counts) {
  const char *label;
  json_t *count;
  printf("  %s by %stransmitter:", what, strcmp(what, "edges") ? "" : "their source's ");
  json_object_foreach((json_t *)counts, label, count)
      printf(" %s %lld", label, (long long)json_integer_value(count));
  printf("\n");
}

static void print_signs(const struct conversion *w) {
  const struct account *a = &w->account;
  printf("  edges: %lld excitatory, %lld inhibitory", (long long)a->above_0, (long long)a->below_0);
  if (a->at_0) printf(", %lld of weight 0", (long long)a->at_0);
  if (w->graph.n_edges && !strcmp(signs_from(w), "none"))
    printf(": unsigned, so all are taken as excitatory; --transmitters FILE or weights below 0 "
           "give signs");
  printf("\n");
}

static void print_result(const struct conversion *w) {
  const struct account *a = &w->account;
  account_print(a);
  if (a->merged_pairs)
    printf("  %lld pair%s repeated, weights summed (%lld rows merged)\n",
           (long long)a->merged_pairs, a->merged_pairs == 1 ? "" : "s", (long long)a->merged_rows);
  if (a->parallel_edges) printf("  %lld parallel edges kept\n", (long long)a->parallel_edges);
  if (w->edges.row_weight)
    printf("  no weight column: each row counts %lld\n", (long long)w->edges.row_weight);
  if (w->edges.places)
    printf("  weights have fractions: read to %d decimal places, no synapse counts\n",
           w->edges.places);
  if (w->o->min_weight)
    printf("  %lld edges below --min-weight %lld left out\n", (long long)a->weak,
           (long long)w->o->min_weight);
  printf("%s: %lld nodes by rule '%s' (%lld without an edge%s), %lld edges, %lld self-loops\n",
         w->o->output, (long long)w->graph.n_nodes, w->o->node_rule, (long long)a->isolated,
         strcmp(w->o->isolated, "drop") ? "" : ", left out", (long long)w->graph.n_edges,
         (long long)a->self_loops);
  print_signs(w);
  if (w->has_signs)
    printf("  signs: %s (%s)\n", w->signs.path,
           json_string_value(json_object_get(w->signs.json, "citation"))
               ? json_string_value(json_object_get(w->signs.json, "citation"))
               : "no citation");
  if (a->nodes_by_transmitter) print_by_transmitter("nodes", a->nodes_by_transmitter);
  if (a->edges_by_transmitter) print_by_transmitter("edges", a->edges_by_transmitter);
}

void conversion_report(const struct conversion *w, json_t *facts) {
  warn(w);
  if (!w->o->json) {
    print_result(w);
    return;
  }
  json_object_set_new(facts, "output", json_string(w->o->output));
  json_print(facts);
}
