/* ranks: 1 2 4 */
/* rundir: refusal, lock, metrics, checkpoints and their rotation. */
#include "check.h"
#include "io/files/files.h"
#include "core/mem.h"
#include "run/folder.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static char base[] = "/tmp/test_rundir_XXXXXX", folder[128];

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  CHECK(file != NULL);
  fputs(text, file);
  fclose(file);
}

static char *read_text(const char *path) {
  static char text[8192];
  FILE *file = fopen(path, "r");
  CHECK(file != NULL);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  return text;
}

static void touch_checkpoint(struct rundir *dir, int64_t step) {
  char path[FILE_PATH];
  rundir_checkpoint_path(dir, step, path);
  if (world.rank == 0) write_text(path, "x");
  comm_barrier(&world);
  CHECK_FINE(rundir_checkpoint_written(&world, dir, step));
}

static void test_first_run(struct job *job) {
  struct rundir dir, second;
  CHECK_FINE(rundir_open(&world, job, &dir));
  /* A second run in the same folder is refused while this one lives. */
  const struct status s = rundir_open(&world, job, &second);
  CHECK_EQ(s.code, EXIT_OUTPUT);
  CHECK(strstr(s.text, "another run works in this folder"));
  json_t *config = json_pack("{s:i}", "threshold", 3),
         *facts = json_pack("{s:s}", "program", "fascicle");
  CHECK_FINE(rundir_config(&world, &dir, config));
  CHECK_FINE(rundir_metrics(&world, &dir, 0, facts));
  for (int i = 1; i <= 4; i++)
    rundir_record(&dir, json_pack("{s:s, s:i}", "record", "rates", "step", 10 * i));
  touch_checkpoint(&dir, 10);
  CHECK_FINE(rundir_best(&world, &dir, 10));
  for (int i = 2; i <= 5; i++) touch_checkpoint(&dir, 10 * i);
  CHECK_FINE(rundir_again(&world, &dir, 40));
  rundir_close(&dir);
  json_decref(config), json_decref(facts);
}

static void check_files(const struct rundir *dir) {
  char path[FILE_PATH];
  static const bool kept[] = {true, false, false, true, true}; /* best, -, -, the last two */
  for (int i = 0; i < 5; i++) {
    rundir_checkpoint_path(dir, 10 * (i + 1), path);
    CHECK_EQ(file_exists(path), kept[i]);
  }
  rundir_file(dir, "again", path);
  CHECK(!file_exists(path));
  rundir_file(dir, "checkpoints/latest", path);
  CHECK_TEXT(read_text(path), "step_00000050.h5\n");
}

static void test_resume(struct job *job) {
  struct rundir dir;
  char path[FILE_PATH], wanted[FILE_PATH];
  CHECK_EQ(rundir_open(&world, job, &dir).code, EXIT_OUTPUT);
  job->resume = "auto";
  CHECK_FINE(rundir_open(&world, job, &dir));
  if (world.rank == 0) check_files(&dir);
  comm_barrier(&world);
  CHECK_FINE(rundir_find_checkpoint(&world, &dir, "auto", path));
  rundir_checkpoint_path(&dir, 50, wanted);
  CHECK_TEXT(path, wanted);
  rundir_checkpoint_before(wanted, path);
  rundir_checkpoint_path(&dir, 40, wanted);
  CHECK_TEXT(path, wanted);
  CHECK_EQ(rundir_find_checkpoint(&world, &dir, "/no/such/file.h5", path).code, EXIT_INPUT);
  json_t *facts = json_object();
  CHECK_FINE(rundir_metrics(&world, &dir, 20, facts));
  json_decref(facts);
  if (world.rank == 0) {
    rundir_file(&dir, "metrics.jsonl", path);
    const char *text = read_text(path);
    CHECK(strstr(text, "\"step\":20}") && !strstr(text, "\"step\":30") &&
          !strstr(text, "\"step\":40"));
  }
  comm_barrier(&world);
  CHECK_FINE(rundir_best(&world, &dir, 50));
  CHECK_FINE(rundir_rewind(&world, &dir, 40, 10));
  rundir_checkpoint_path(&dir, 50, path);
  CHECK(!file_exists(path));
  if (world.rank == 0) {
    rundir_file(&dir, "checkpoints/best", path);
    CHECK_TEXT(read_text(path), "step_00000010.h5\n");
  }
  CHECK_FINE(rundir_best(&world, &dir, 40));
  CHECK_FINE(rundir_rewind(&world, &dir, 30, 20));
  CHECK(world.rank > 0 || !file_exists(path)); /* neither is there any more */
  comm_barrier(&world);
  rundir_close(&dir);
}

static void test_force(struct job *job) {
  struct rundir dir;
  char path[FILE_PATH];
  job->force = true;
  CHECK_EQ(rundir_open(&world, job, &dir).code, EXIT_USAGE);
  job->resume = "none";
  snprintf(path, sizeof path, "%s/notes.txt", folder);
  if (world.rank == 0) write_text(path, "mine");
  comm_barrier(&world);
  CHECK_FINE(rundir_open(&world, job, &dir));
  CHECK(file_exists(path)); /* other people's files stay */
  char found[FILE_PATH];
  CHECK_FINE(rundir_find_checkpoint(&world, &dir, "auto", found));
  CHECK_TEXT(found, "");
  rundir_close(&dir);
  char strange[FILE_PATH];
  snprintf(strange, sizeof strange, "%s/strange", base);
  snprintf(path, sizeof path, "%.3000s/config.json", strange);
  if (world.rank == 0) {
    CHECK_FINE(folder_make(strange));
    write_text(path, "{}");
  }
  comm_barrier(&world);
  job->output = strange;
  CHECK_EQ(rundir_open(&world, job, &dir).code, EXIT_OUTPUT);
  rundir_close(&dir);
  CHECK(
      file_exists(path)); /* a folder that this program did not make, though it looks like a run */
  job->output = folder;
}

/* Locks of the dead are taken over; those of the living, and of hosts that
 * were heard of lately, not. */
static int open_with_lock(struct job *job, const char *text) {
  char path[FILE_PATH];
  snprintf(path, sizeof path, "%s/lock", folder);
  if (world.rank == 0) write_text(path, text);
  comm_barrier(&world);
  struct rundir dir;
  const int code = rundir_open(&world, job, &dir).code;
  rundir_close(&dir);
  if (world.rank == 0) unlink(path);
  comm_barrier(&world);
  return code;
}

static void test_stale(struct job *job) {
  char host[200] = "?", text[512];
  gethostname(host, sizeof host - 1);
  snprintf(text, sizeof text, "{\"host\": \"%s\", \"pid\": 1, \"process_start\": 999999999}", host);
  CHECK_EQ(open_with_lock(job, text), 0);
  snprintf(text, sizeof text, "{\"host\": \"elsewhere\", \"pid\": 5, \"slurm_job\": \"77\"}");
  CHECK_EQ(open_with_lock(job, text), EXIT_OUTPUT);
  setenv("SLURM_JOB_ID", "77", 1), setenv("SLURM_RESTART_COUNT", "1", 1);
  CHECK_EQ(open_with_lock(job, text), 0); /* this very job before it was requeued */
  unsetenv("SLURM_JOB_ID"), unsetenv("SLURM_RESTART_COUNT");
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  if (world.rank == 0) CHECK(mkdtemp(base) != NULL);
  comm_share(&world, base, sizeof base, 0);
  snprintf(folder, sizeof folder, "%s/run", base);
  struct job job = job_defaults();
  job.output = folder, job.keep = 2;
  test_first_run(&job);
  test_resume(&job);
  test_force(&job);
  test_stale(&job);
  comm_barrier(&world);
  char command[200];
  snprintf(command, sizeof command, "rm -r %s", base);
  if (world.rank == 0) CHECK_EQ(system(command), 0);
  return test_end();
}
