/* The graph and the files that every fuzzed verb starts from. */
#include "fuzz_base.h"

static void put_text(const char *name, const char *text) {
  FILE *file = fopen(name, "wb");
  if (!file || fputs(text, file) < 0 || fclose(file)) abort();
}

/* A ring with chords, so that every neuron has inputs and outputs. */
static void make_tables(void) {
  enum { N = 24 };
  static const char *const labels[] = {"acetylcholine", "gaba", "", "glutamate"};
  FILE *edges = fopen("edges.csv", "wb"), *nodes = fopen("nodes.csv", "wb"),
       *named = fopen("named.csv", "wb");
  if (!edges || !nodes || !named) abort();
  fputs("body_pre,body_post,weight,delay\n", edges), fputs("Source,Target,Weight\n", named);
  fputs("bodyId,type,superclass,transmitter\n", nodes);
  for (int i = 0; i < N; i++) {
    fprintf(nodes, "%d,t%d,s%d,%s\n", 100 + 7 * i, i % 5, i % 2, labels[i % 4]);
    for (int k = 1; k < 5; k++) {
      const int to = (i + k * k) % N;
      fprintf(edges, "%d,%d,%d,%d\n", 100 + 7 * i, 100 + 7 * to, 1 + (i + k) % 9, 1 + (i * k) % 3);
      fprintf(named, "N%d,N%d,%d\n", i, to, 1 + (i + k) % 9);
    }
  }
  fclose(edges), fclose(nodes), fclose(named);
  put_text("signs.json",
           "{\"name\": \"x\", \"signs\": {\"acetylcholine\": 1, \"gaba\": -1, \"missing\": "
           "\"exclude\", \"glutamate\": -1}}");
}

void base_graphs(void) {
  make_tables();
  fuzz_must(&verb_convert, "--edges", "edges.csv", "--nodes", "nodes.csv", "--node-columns",
            "transmitter=transmitter", "--signs", "./signs.json", "--scale", "40", "--streamable",
            "--parts", "4", "--output", "base0.h5", NULL);
  fuzz_must(&verb_convert, "--edges", "named.csv", "--columns",
            "pre=Source,post=Target,weight=Weight", "--scale", "40", "--no-order", "--output",
            "base1.h5", NULL);
  fuzz_must(&verb_convert, "--edges", "edges.csv", "--columns", "delay=delay", "--packed",
            "--parts", "2", "--scale", "40", "--output", "base2.h5", NULL);
  fuzz_must(&verb_export, "base0.h5", "--format", "scx", "--block-size", "10", "--watchdog", "0",
            "--output", "x.scx", NULL);
  fuzz_must(&verb_convert, "--edges", "x.scx", "--output", "base3.h5", NULL);
}

void base_settings(void) {
  put_text("lif.json",
           "{\"threshold\": 400, \"decay_shifts\": [4], \"reset\": 0, \"refractory_steps\": 2, "
           "\"seed\": 1, "
           "\"initial\": [{\"neurons\": {\"indices\": [1, 2]}, \"potential\": 390}], \"stimulus\": "
           "[{\"neurons\": \"all\", \"kind\": \"poisson\", \"rate_hz\": 200, \"weight\": 420}, "
           "{\"neurons\": "
           "{\"indices\": [3]}, \"kind\": \"current\", \"value\": 60}, {\"neurons\": {\"indices\": "
           "[5]}, "
           "\"kind\": \"spikes\", \"steps\": [0, 2]}], \"record\": {\"potential\": {\"neurons\": "
           "{\"indices\": [0, 1, 2]}, \"every\": 2}}}");
  put_text(
      "model.json",
      "{\"model\": \"psc_exp\", \"dt_ms\": 1, \"weight_pa\": 5, \"neuron\": {\"v_rest_mv\": -65, "
      "\"v_threshold_mv\": -50, \"v_reset_mv\": -65, \"tau_m_ms\": 10, \"tau_syn_ex_ms\": 1, "
      "\"tau_syn_in_ms\": 2, \"c_m_pf\": 250, \"i_e_pa\": 2000}, \"record\": {\"variables\": "
      "{\"neurons\": \"all\", \"variables\": [\"v\", \"i_ex\"], \"every\": 2}}}");
  put_text("text.txt",
           "the quick brown fox jumps over the lazy dog \xC3\xA9 and again the quick brown fox\n");
  put_text("train.json",
           "{\"batch\": 2, \"steps_per_window\": 4, \"n_input\": 3, \"n_output\": 4, "
           "\"embedding\": 2, \"eval_every\": 1, \"eval_windows\": 2, \"train_steps\": 2, "
           "\"microsteps\": 1, \"validation_fraction\": 0.2}");
}
