/* Runs a verb inside the fuzzer: an end of the job returns here, and memory is counted. */
#include "fuzz_run.h"
#include "core/comm.h"
#include "core/log.h"
#include "core/watchdog.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <hdf5.h>
#include <jansson.h>
#include <sanitizer/asan_interface.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>

static struct comm world;
static char allowed_names[1024];

uint8_t take8(struct input *in) {
  if (!in->left) return 0;
  in->left--;
  return *in->at++;
}

uint32_t take32(struct input *in) {
  uint32_t x = 0;
  for (int i = 0; i < 4; i++) x = x << 8 | take8(in);
  return x;
}

uint64_t take64(struct input *in) {
  const uint64_t high = take32(in);
  return high << 32 | take32(in);
}

/* ---- memory: what lives is known, so that it can be freed after an end by DIE ---- */

enum { SLOT_BITS = 16, SLOTS = 1 << SLOT_BITS };
static void *living[SLOTS]; /* open addressing, never near full */
static int n_living;

static size_t slot_of(const void *p) {
  return ((uintptr_t)p >> 4) * 0x9E3779B97F4A7C15u >> (64 - SLOT_BITS);
}

static void note(void *p) {
  if (++n_living > SLOTS / 2) abort();
  size_t i = slot_of(p);
  while (living[i]) i = (i + 1) % SLOTS;
  living[i] = p;
}

/* Those behind it move up, so that no search ends at the gap. */
static bool forget(const void *p) {
  size_t i = slot_of(p);
  while (living[i] && living[i] != p) i = (i + 1) % SLOTS;
  if (!living[i]) return false;
  living[i] = NULL, n_living--;
  for (i = (i + 1) % SLOTS; living[i]; i = (i + 1) % SLOTS) {
    void *moved = living[i];
    living[i] = NULL, n_living--;
    note(moved);
  }
  return true;
}

int __real_posix_memalign(void **p, size_t align, size_t bytes);
void __real_free(void *p);
int __wrap_posix_memalign(void **p, size_t align, size_t bytes);
void __wrap_free(void *p);

int __wrap_posix_memalign(void **p, size_t align, size_t bytes) {
  const int bad = __real_posix_memalign(p, align, bytes);
  if (!bad) note(*p);
  return bad;
}

void __wrap_free(void *p) {
  if (p) forget(p);
  __real_free(p);
}

void *__real_realloc(void *p, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);

void *__wrap_realloc(void *p, size_t bytes) {
  const bool known = p && forget(p);
  void *moved = __real_realloc(p, bytes);
  if (known && moved) note(moved);
  return moved;
}

static void *json_take(size_t bytes) {
  void *p = malloc(bytes);
  if (p) note(p);
  return p;
}

static void free_the_living(void) {
  for (size_t i = 0; n_living; i++)
    if (living[i]) __real_free(living[i]), living[i] = NULL, n_living--;
}

/* ---- the end by DIE ---- */

static jmp_buf death;
static bool may_die;
static int died;

_Noreturn void __wrap_die_at(const char *file, int line, int code, const char *format, ...);

_Noreturn void __wrap_die_at(const char *file, int line, int code, const char *format, ...) {
  char text[1200];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  fprintf(stderr, "died with %d: %s (%s:%d)\n", code, text, file, line);
  if (!may_die || !*text) abort();
  died = code;
  longjmp(death, 1);
}

static void close_hdf5(void) {
  hid_t id[64];
  static const unsigned kinds[] = {H5F_OBJ_ATTR, H5F_OBJ_DATASET, H5F_OBJ_DATATYPE, H5F_OBJ_GROUP,
                                   H5F_OBJ_FILE};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    for (ssize_t n; (n = H5Fget_obj_ids((hid_t)H5F_OBJ_ALL, kinds[k], 64, id)) > 0;)
      for (ssize_t i = 0; i < n; i++) H5Idec_ref(id[i]);
}

static ssize_t hdf5_ids(void) {
  return H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL);
}

/* Files that a dead verb left open. */
static void close_files(int first) {
  for (int fd = first; fd < first + 64; fd++) close(fd);
}

/* ---- one rank is its own group ---- */

struct comm __wrap_comm_split(const struct comm *comm, int colour, int key);
struct comm __wrap_comm_split_host(const struct comm *comm);
void __wrap_comm_free(struct comm *comm);
void __wrap_signals_install(void);
void __wrap_watchdog_start(struct watchdog_rule rule);
int __wrap_fsync(int fd);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

struct comm __wrap_comm_split(const struct comm *comm, int colour, int key) {
  (void)comm, (void)colour, (void)key;
  return (struct comm){.mpi = MPI_COMM_SELF, .size = 1};
}

struct comm __wrap_comm_split_host(const struct comm *comm) {
  return __wrap_comm_split(comm, 0, 0);
}

void __wrap_comm_free(struct comm *comm) {
  *comm = (struct comm){0};
}

void __wrap_signals_install(void) {}

void __wrap_watchdog_start(struct watchdog_rule rule) {
  (void)rule;
}

int __wrap_fsync(int fd) {
  (void)fd;
  return 0;
}

/* No helpers: an end must come from the thread that returns to the fuzzer. */
struct ahead *__real_ahead_open(int n_helpers, void (*work)(void *of, int64_t piece), void *of);
struct ahead *__wrap_ahead_open(int n_helpers, void (*work)(void *of, int64_t piece), void *of);

struct ahead *__wrap_ahead_open(int n_helpers, void (*work)(void *of, int64_t piece), void *of) {
  (void)n_helpers;
  return __real_ahead_open(0, work, of);
}

/* Whoever waits for another run to go away asks again at once. */
int __wrap_nanosleep(const struct timespec *time, struct timespec *left) {
  (void)time, (void)left;
  return 0;
}

/* ---- files ---- */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)info, (void)kind, (void)walk;
  return remove(path);
}

void fuzz_remove(const char *path) {
  nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void fuzz_copy(const char *from, const char *to) {
  char piece[1 << 16];
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  if (!in || !out) abort();
  for (size_t n; (n = fread(piece, 1, sizeof piece, in));)
    if (fwrite(piece, 1, n, out) != n) abort();
  fclose(in), fclose(out);
}

static void list_names(char *to, size_t size) {
  DIR *folder = opendir(".");
  size_t at = 0;
  for (struct dirent *entry; folder && (entry = readdir(folder));)
    at += (size_t)snprintf(to + at, size - at, " %s ", entry->d_name);
  closedir(folder);
}

void fuzz_seal(const char *allowed) {
  list_names(allowed_names, sizeof allowed_names);
  strncat(allowed_names, allowed, sizeof allowed_names - strlen(allowed_names) - 1);
}

static void check_names(void) {
  DIR *folder = *allowed_names ? opendir(".") : NULL;
  for (struct dirent *entry; folder && (entry = readdir(folder));) {
    char name[300];
    snprintf(name, sizeof name, " %s ", entry->d_name);
    if (strstr(allowed_names, name)) continue;
    fprintf(stderr, "a file appeared where none may: %s\n", entry->d_name);
    abort();
  }
  if (folder) closedir(folder);
}

/* ---- running ---- */

/* LeakSanitizer does not survive MPI's threads: what lives is counted here instead. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "detect_leaks=0:detect_odr_violation=0";
}

void fuzz_start(void) {
  static char *words[] = {"fascicle", NULL};
  int n = 1;
  char **list = words;
  setenv("OMP_NUM_THREADS", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1), setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1);
  setenv("OMPI_MCA_opal_signal", "", 1); /* crashes are the fuzzer's to report */
  json_set_alloc_funcs(json_take, __wrap_free);
  world = comm_start(&n, &list);
  world.mpi = MPI_COMM_SELF;
  signal(SIGABRT, SIG_DFL); /* the fuzzer takes only signals that nobody has taken */
  H5open();
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  if (chdir(fuzz_folder())) abort();
  log_start(0, true);
}

static int run(const struct verb *verb, va_list args, struct status *s) {
  char *words[40] = {(char *)verb->name};
  int n = 1;
  for (const char *word; n < 39 && (word = va_arg(args, const char *)); n++)
    words[n] = (char *)word;
  const int first_fd = dup(0), living_before = n_living;
  const ssize_t ids = hdf5_ids();
  close(first_fd);
  may_die = true, died = 0;
  *s = (struct status){0};
  if (!setjmp(death)) *s = verb->run(&world, n, words);
  may_die = false;
  if (died) {
    log_to_file(NULL);
    close_hdf5(), close_files(first_fd);
    free_the_living();
    return died;
  }
  log_to_file(NULL);
  if (s->code && !*s->text) abort();
  if (n_living == living_before && hdf5_ids() == ids) return s->code;
  fprintf(stderr, "leaked: %d blocks, %lld HDF5 handles; status %d: %s\n", n_living - living_before,
          (long long)(hdf5_ids() - ids), s->code, s->text);
  for (size_t i = 0; i < SLOTS; i++)
    if (living[i]) __asan_describe_address(living[i]);
  abort();
}

void fuzz_begin(const uint8_t *data, size_t size) {
  char path[256];
  const char *above = getenv("FUZZ_TMP");
  snprintf(path, sizeof path, "%.200s/input", above ? above : "/dev/shm");
  FILE *file = above ? fopen(path, "wb") : NULL;
  if (!file) return;
  fwrite(data, 1, size, file);
  fclose(file);
}

int fuzz_verb(const struct verb *verb, ...) {
  struct status s;
  va_list args;
  va_start(args, verb);
  const int code = run(verb, args, &s);
  va_end(args);
  if (died && code != EXIT_USAGE && code != EXIT_INPUT && code != EXIT_OUTPUT) abort();
  check_names();
  return code;
}

void fuzz_must(const struct verb *verb, ...) {
  struct status s;
  va_list args;
  va_start(args, verb);
  const int code = run(verb, args, &s);
  va_end(args);
  if (!code) return;
  fprintf(stderr, "%s: %d: %s\n", verb->name, code, s.text);
  abort();
}
