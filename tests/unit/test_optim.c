/* ranks: 1 */
/* Schedules, the clip, the configuration. */
#include "check.h"
#include "train/optim.h"
#include "train/config.h"

#include <math.h>
#include <stdlib.h>

static void test_schedule(void) {
  struct optim_config c = {.schedule = SCHEDULE_COSINE, .warmup = 4};
  const double wanted[] = {0.25, 0.5, 0.75, 1};
  for (int i = 0; i < 4; i++) CHECK(fabs(optim_factor(&c, i, 24) - wanted[i]) < 1e-15);
  CHECK(optim_factor(&c, 4, 24) == 1);
  CHECK(fabs(optim_factor(&c, 14, 24) - 0.5) < 1e-15);
  CHECK(optim_factor(&c, 24, 24) < 1e-15 && optim_factor(&c, 99, 24) < 1e-15);
  for (int i = 5; i < 24; i++) CHECK(optim_factor(&c, i, 24) < optim_factor(&c, i - 1, 24));
  c.schedule = SCHEDULE_CONSTANT;
  CHECK(optim_factor(&c, 1, 24) == 0.5 && optim_factor(&c, 23, 24) == 1);
}

static void test_clip(void) {
  struct optim_config c = {.clip = 1};
  CHECK(adamw_clip(c.clip, 0.5) == 1 && adamw_clip(c.clip, 4) == 0.25 &&
        adamw_clip(c.clip, 0) == 1);
  c.clip = 0;
  CHECK(adamw_clip(c.clip, 1e9) == 1);
}

static int n_said;
static void say(const char *change) {
  n_said++;
  CHECK(strstr(change, "->"));
}

static void test_config(void) {
  struct train_config c;
  json_t *json, *before, *now;
  CHECK_FINE(json_from_text(
      "{\"batch\": 7, \"optimizer\": {\"schedule\": \"cosine\", \"clip\": 2}}", "t", &json));
  CHECK_FINE(train_config_read(json, "t", &c));
  CHECK(c.batch == 7 && c.optimizer.schedule == SCHEDULE_COSINE && c.optimizer.clip == 2 &&
        c.microsteps == 2);
  before = train_config_json(&c);
  struct train_config again;
  CHECK_FINE(train_config_read(before, "t", &again));
  CHECK(again.optimizer.lr_edges == 3e-4 && again.batch == 7); /* what is written can be read */
  now = train_config_json(&c);
  CHECK_FINE(train_config_compare(before, now, say));
  CHECK_EQ(n_said, 0);
  CHECK_FINE(json_set_path(now, "optimizer.clip=3"));
  CHECK_FINE(json_set_path(now, "train_steps=3"));
  CHECK_FINE(train_config_compare(before, now, say));
  CHECK_EQ(n_said, 2);
  CHECK_FINE(json_set_path(now, "n_input=3"));
  CHECK_EQ(train_config_compare(before, now, say).code, EXIT_USAGE);
  json_decref(json), json_decref(before), json_decref(now);
  CHECK_FINE(json_from_text("{\"optimizer\": {\"lr\": 1}}", "t", &json));
  CHECK_EQ(train_config_read(json, "t", &c).code, EXIT_USAGE);
  json_decref(json);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  test_schedule();
  test_clip();
  test_config();
  return test_end();
}
