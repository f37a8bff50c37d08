/* ranks: 1 2 4 */
/* job: shared options, the choices that follow, configuration with --set. */
#include "check.h"
#include "run/job.h"
#include "core/mem.h"

#include <unistd.h>

static const struct usage usage = {
    .verb = "test", .operands = "", .about = "A test.", .example = "  none"};

static struct status parse(struct job *job, int argc, char **argv) {
  struct option rows[JOB_OPTIONS];
  *job = job_defaults();
  return options_parse(&usage, rows, job_options(job, rows), argc, argv, NULL);
}

static void test_choices(void) {
  char *words[] = {"test",     "--device", "cpu",      "--threads", "3",
                   "--memory", "1.5",      "--resume", "a/file.h5"};
  struct job job;
  CHECK_FINE(parse(&job, 9, words));
  CHECK_FINE(job_start(&world, &job));
  CHECK_TEXT(job.backend->name, "cpu");
  CHECK_TEXT(job.via->name, "mpi");
  CHECK_TEXT(job.resume, "a/file.h5");
  CHECK_EQ(job.n_threads, 3);
  CHECK_EQ(job.memory_bytes, 1536ll << 20);
  CHECK_EQ(job.local_size, world.size);
  struct grid grid;
  const int parts = world.size > 1 ? world.size / 2 : 1;
  CHECK_FINE(job_grid(&world, &job, parts, &grid));
  CHECK(grid.replica_comm.via == job.via && grid.part_comm.via == job.via);
  CHECK_EQ(grid.replica_comm.size, parts);
  json_t *facts = job_provenance(&world, &job, &grid);
  CHECK_EQ(json_integer_value(json_object_get(facts, "ranks")), world.size);
  CHECK_EQ(json_integer_value(json_object_get(facts, "parts")), parts);
  json_decref(facts);
  job_grid_close(&grid);
  CHECK_EQ(job_request(&job), REQUEST_NONE);
  job.max_time = 1e-9;
  CHECK_EQ(job_request(&job), REQUEST_STOP);
  job_stop(&job);
}

static void test_orders(void) {
  char *nccl[] = {"test", "--device", "cpu", "--transport", "nccl"},
       *gpu[] = {"test", "--device", "gpu"};
  struct job job;
  CHECK_FINE(parse(&job, 5, nccl));
  CHECK_EQ(job_start(&world, &job).code, EXIT_USAGE);
  CHECK_EQ(parse(&job, 3, gpu).code, EXIT_USAGE);
}

static void test_config(void) {
  char path[] = "/tmp/test_job_XXXXXX";
  if (world.rank == 0) {
    const int fd = mkstemp(path);
    static const char text[] = "{\"threshold\": 5, \"big\": \"9007199254740993\"}";
    CHECK(write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    close(fd);
  }
  comm_share(&world, path, sizeof path, 0);
  struct job job = job_defaults();
  job.config = path, job.set = (struct texts){2, {"threshold=7", "record.spikes=all"}};
  json_t *config, *same;
  CHECK_FINE(job_config(&world, &job, &config));
  CHECK_FINE(json_from_text(
      "{\"record\": {\"spikes\": \"all\"}, \"big\": \"9007199254740993\", \"threshold\": 7}",
      "text", &same));
  CHECK(json_equal(config, same));
  char a[65], b[65];
  job_json_digest(config, a), job_json_digest(same, b);
  CHECK_TEXT(a, b);
  json_decref(config), json_decref(same);
  comm_barrier(&world);
  if (world.rank == 0) unlink(path);
  comm_barrier(&world);
  CHECK_EQ(job_config(&world, &job, &config).code, EXIT_USAGE);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  test_choices();
  test_orders();
  test_config();
  return test_end();
}
