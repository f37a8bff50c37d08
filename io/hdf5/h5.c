/* Files and types: opening, closing, the errors of the library in our words. */
#include "inside.h"
#include "core/mem.h"
#include "core/watchdog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- errors ---- */

enum { REASON = 512 };

static herr_t keep_first(unsigned n, const H5E_error2_t *e, void *text) {
  char *to = text;
  (void)n;
  if (!*to && e->desc) snprintf(to, REASON, "%s", e->desc);
  return 0;
}

/* The library adds time, buffer address and a line break to what the system said: only the system's
 * words are kept. True when there are some: then the file may be good. */
static bool system_words(const char *reason, char *text, size_t size) {
  static const char before[] = "error message = '";
  const char *words = strstr(reason, before),
             *end = words ? strchr(words + strlen(before), '\'') : NULL;
  if (end)
    snprintf(text, size, "%.*s: %.*s", (int)strcspn(reason, ":,"), reason,
             (int)(end - words) - (int)strlen(before), words + strlen(before));
  return end != NULL;
}

static bool reason_of(char *text, size_t size) {
  char reason[REASON] = "";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, reason);
  if (system_words(reason, text, size)) return true;
  snprintf(text, size, "HDF5: %.*s", (int)strcspn(reason, "\n"),
           *reason ? reason : "no reason given");
  return false;
}

void h5_reason(char *text, size_t size) {
  reason_of(text, size);
}

int64_t h5_check_at(const char *source, int line, const struct h5_file *file, const char *what,
                    int64_t result) {
  if (result >= 0) return result;
  char reason[256];
  const bool by_system = reason_of(reason, sizeof reason);
  if (file->discard) unlink(file->discard);
  if (file->writing && by_system)
    die_at(source, line, EXIT_OUTPUT, "%s: cannot write: %s", file->path, reason);
  if (file->writing)
    die_at(source, line, EXIT_OUTPUT, "%s: cannot write %s: %s", file->path, what, reason);
  die_at(source, line, EXIT_INPUT, "%s: cannot read %s: %s%s", file->path, what,
         by_system ? "" : "the file is damaged or incomplete: ", reason);
}

_Noreturn void h5_refuse(const struct h5_file *file, const char *what, const char *why) {
  DIE(EXIT_INPUT, "%s: %s: %s", file->path, what, why);
}

/* The library must not print its stacks, one line is ours to print; nor load
 * code that a file asks for. */
static void silence(void) {
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  H5PLset_loading_state(0);
}

/* ---- types ---- */

static const struct {
  const char *name;
  size_t bytes;
} ftypes[] = {
    [F_U8] = {"u8", 1},   [F_I16] = {"i16", 2},    [F_U16] = {"u16", 2}, [F_I32] = {"i32", 4},
    [F_U32] = {"u32", 4}, [F_I64] = {"i64", 8},    [F_U64] = {"u64", 8}, [F_F32] = {"f32", 4},
    [F_F64] = {"f64", 8}, [F_OTHER] = {"other", 0}};

size_t ftype_bytes(enum ftype type) {
  return ftypes[type].bytes;
}

const char *ftype_name(enum ftype type) {
  return ftypes[type].name;
}

hid_t h5_memory_type(enum ftype type) {
  const hid_t of[] = {
      [F_U8] = H5T_NATIVE_UINT8,   [F_I16] = H5T_NATIVE_INT16,  [F_U16] = H5T_NATIVE_UINT16,
      [F_I32] = H5T_NATIVE_INT32,  [F_U32] = H5T_NATIVE_UINT32, [F_I64] = H5T_NATIVE_INT64,
      [F_U64] = H5T_NATIVE_UINT64, [F_F32] = H5T_NATIVE_FLOAT,  [F_F64] = H5T_NATIVE_DOUBLE};
  return of[type];
}

hid_t h5_stored_type(enum ftype type) {
  const hid_t of[] = {[F_U8] = H5T_STD_U8LE,   [F_I16] = H5T_STD_I16LE,  [F_U16] = H5T_STD_U16LE,
                      [F_I32] = H5T_STD_I32LE, [F_U32] = H5T_STD_U32LE,  [F_I64] = H5T_STD_I64LE,
                      [F_U64] = H5T_STD_U64LE, [F_F32] = H5T_IEEE_F32LE, [F_F64] = H5T_IEEE_F64LE};
  return of[type];
}

enum ftype h5_type_of(hid_t type) {
  for (enum ftype t = F_U8; t < F_OTHER; t++)
    if (H5Tequal(type, h5_stored_type(t)) > 0) return t;
  return F_OTHER;
}

/* ---- open and close ---- */

static herr_t refuse_link(const char *from, const char *group, const char *file, const char *object,
                          unsigned *flags, hid_t access, void *unused) {
  (void)from, (void)group, (void)file, (void)object, (void)flags, (void)access, (void)unused;
  return -1;
}

void h5_set_links(struct h5_file *file) {
  file->links = H5Pcreate(H5P_LINK_ACCESS);
  if (file->links < 0 || H5Pset_elink_cb((hid_t)file->links, refuse_link, NULL) < 0)
    DIE(EXIT_RUNTIME, "HDF5: no access list");
}

/* Attributes and links stand in the header of their object, which has a checksum of its own: from
 * damaged heaps of them the library frees what it never took. Groups made on the way to an object
 * are made like the root. */
static void keep_in_header(hid_t creation) {
  if (H5Pset_attr_phase_change(creation, 1000, 500) < 0 ||
      H5Pset_link_phase_change(creation, 1000, 500) < 0)
    DIE(EXIT_RUNTIME, "HDF5: no creation list");
}

/* With the blank: "sblock" stands in the words for a file cut short. */
static bool about_locks(const char *reason) {
  return strstr(reason, " lock") != NULL;
}

static struct status lock_failure(int code, const char *path, const char *reason) {
  return failure(
      code,
      "%s: cannot lock the file (%s): another program is writing it, or this file system has no "
      "locks; in that case set HDF5_USE_FILE_LOCKING=FALSE",
      path, reason);
}

struct status h5_create(const char *path, struct h5_file *file) {
  silence();
  *file = (struct h5_file){.writing = true};
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  const hid_t creation = H5Pcreate(H5P_FILE_CREATE);
  /* The format of 1.10: every piece of metadata has a checksum, so that a turned bit is
   * an error, not a crash. */
  if (access < 0 || creation < 0 ||
      H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) < 0)
    DIE(EXIT_RUNTIME, "%s: HDF5: no access list", path);
  keep_in_header(creation);
  errno = 0;
  file->id = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
  const int why = errno;
  char reason[256];
  h5_reason(reason, sizeof reason); /* before any other call: each one forgets it */
  H5Pclose(access), H5Pclose(creation);
  if (file->id < 0) {
    unlink(path); /* it may have been made, and be empty */
    if (about_locks(reason)) return lock_failure(EXIT_OUTPUT, path, reason);
    return failure(EXIT_OUTPUT, "%s: cannot write: %s", path, why ? strerror(why) : reason);
  }
  file->path = mem_string(path);
  file->discard = mem_string(path);
  h5_set_links(file);
  return fine();
}

/* Why a file did not open, in words that lead to a remedy. */
static struct status open_failure(const char *path) {
  char reason[256];
  const bool by_system = reason_of(reason, sizeof reason);
  FILE *plain = fopen(path, "rbe");
  if (!plain) return failure(EXIT_INPUT, "%s: cannot open: %s", path, strerror(errno));
  static const char magic[8] = "\211HDF\r\n\032\n";
  char head[8] = "";
  const size_t got = fread(head, 1, sizeof head, plain);
  const bool folder = !got && ferror(plain);
  fclose(plain);
  if (folder) return failure(EXIT_INPUT, "%s: is a folder, not a file", path);
  if (!got) return failure(EXIT_INPUT, "%s: the file is empty", path);
  if (got < sizeof head || memcmp(head, magic, sizeof head))
    return failure(EXIT_INPUT, "%s: not an HDF5 file; `fascicle convert` makes a graph of a table",
                   path);
  if (about_locks(reason)) return lock_failure(EXIT_INPUT, path, reason);
  if (by_system) return failure(EXIT_INPUT, "%s: cannot open: %s", path, reason);
  return failure(EXIT_INPUT, "%s: the file is damaged or was cut short: %s", path, reason);
}

struct status h5_open(const char *path, struct h5_file *file) {
  silence();
  *file = (struct h5_file){0};
  file->id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file->id < 0) return open_failure(path);
  file->path = mem_string(path);
  h5_set_links(file);
  return fine();
}

/* When a rank's write fails within the collective close, the library goes on to close the
 * file there while the others wait for it in another call. So as much as can is written
 * before, where the failure comes back to us; for the rest no long pause is granted: there
 * is little left to write. */
static void close_shared(struct h5_file *file) {
  pulse("HDF5 flush");
  CHECK_H5(file, "its end", H5Fflush(file->id, H5F_SCOPE_LOCAL));
  pulse("HDF5 close");
  CHECK_H5(file, "its end", H5Fclose(file->id));
}

static void close_own(struct h5_file *file) {
  watchdog_pause("HDF5 close");
  CHECK_H5(file, "its end", H5Fclose(file->id));
  watchdog_resume();
}

void h5_close(struct h5_file *file) {
  if (!file->path) return;
  if (file->shared)
    close_shared(file);
  else
    close_own(file);
  H5Pclose((hid_t)file->links);
  mem_free(file->path), mem_free(file->discard);
  *file = (struct h5_file){0};
}
