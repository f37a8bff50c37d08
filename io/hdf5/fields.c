/* Checkpoints: rank 0 makes the file with everything but the data, all ranks write their rows,
 * all sync, rank 0 renames. */
#include "fields.h"
#include "io/files/files.h"
#include "h5.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/numbers.h"

#include <stdio.h>
#include <string.h>

enum { FIELDS_VERSION = 1 };

struct fields_file {
  struct h5_file h5;
};

/* ---- checksums ---- */

/* The bits of one element as an unsigned number. */
static uint64_t bits_of(const unsigned char *at, size_t bytes) {
  uint64_t x = 0; /* little-endian machines only, like the whole program */
  if (bytes == 4)
    memcpy(&x, at, 4);
  else if (bytes == 8)
    memcpy(&x, at, 8);
  else if (bytes == 2)
    memcpy(&x, at, 2);
  else
    x = *at;
  return x;
}

/* Sum over the elements of mix(mix(place) + bits), place = row * width + column + 1, modulo 2^64:
 * the same for any split of the rows. */
static uint64_t checksum(const void *data, enum ftype type, gidx first, int64_t n, int width) {
  const size_t bytes = ftype_bytes(type);
  const unsigned char *at = data;
  const uint64_t before = (uint64_t)first * (uint64_t)width;
  uint64_t sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(static)
  for (int64_t i = 0; i < n * width; i++)
    sum += mix_u64(mix_u64(before + (uint64_t)i + 1) + bits_of(at + (size_t)i * bytes, bytes));
  return sum;
}

static uint64_t sum_over(const struct comm *comm, uint64_t mine) {
  uint64_t *all = NEW(uint64_t, comm->size), sum = 0;
  comm_gather(comm, &mine, sizeof mine, all);
  for (int r = 0; r < comm->size; r++) sum += all[r];
  mem_free(all);
  return sum;
}

static void checksum_text(uint64_t sum, char text[20]) {
  snprintf(text, 20, "%016llx", (unsigned long long)sum);
}

/* ---- writing ---- */

/* The ranks' rows must make up each field. */
static struct status check_rows(const struct comm *comm, const char *path,
                                const struct field *fields, int n) {
  int64_t *rows = NEW(int64_t, n);
  struct status s = fine();
  for (int i = 0; i < n; i++) rows[i] = fields[i].n_local;
  comm_sum_i64(comm, rows, n);
  for (int i = 0; i < n && !s.code; i++)
    if (rows[i] != fields[i].n_global || fields[i].width < 1)
      s = failure(EXIT_RUNTIME, "%s: field '%s': the ranks hold %lld rows of %lld", path,
                  fields[i].name, (long long)rows[i], (long long)fields[i].n_global);
  mem_free(rows);
  return s;
}

static int64_t bytes_of(const struct field *fields, int n) {
  int64_t bytes = 1 << 20;
  for (int i = 0; i < n; i++)
    bytes += fields[i].n_global * fields[i].width * (int64_t)ftype_bytes(fields[i].type);
  return bytes;
}

static void put_root(struct h5_file *h5, const char *kind, const char *meta) {
  const int32_t version = FIELDS_VERSION;
  char now[32];
  time_utc(now);
  h5_put_text(h5, "/", "format", kind);
  h5_put_values(h5, "/", "format_version", F_I32, 1, &version);
  h5_put_text(h5, "/", "created_by", "fascicle " FASCICLE_VERSION);
  h5_put_text(h5, "/", "created_utc", now);
  h5_put_text(h5, "/", "meta", meta);
}

/* The whole file but for the rows. */
static struct status make_file(const char *tmp, const char *kind, const char *meta,
                               const struct field *fields, const uint64_t *sums, int n) {
  struct h5_file h5;
  TRY(h5_create(tmp, &h5));
  put_root(&h5, kind, meta);
  for (int i = 0; i < n; i++) {
    char sum[20];
    checksum_text(sums[i], sum);
    h5_make_rows(&h5, fields[i].name, fields[i].type, fields[i].n_global, fields[i].width);
    h5_put_text(&h5, fields[i].name, "checksum", sum);
    h5_put_text(&h5, fields[i].name, "unit", fields[i].unit ? fields[i].unit : "1");
    h5_put_text(&h5, fields[i].name, "about", fields[i].about ? fields[i].about : "");
  }
  h5_close(&h5);
  return fine();
}

static uint64_t *checksums(const struct comm *comm, const struct field *fields, int n) {
  uint64_t *sums = NEW(uint64_t, n);
  for (int i = 0; i < n; i++) {
    ASSERT(fields[i].type != F_OTHER && fields[i].width >= 1 && fields[i].n_local >= 0);
    ASSERT(fields[i].n_local == 0 || fields[i].first + fields[i].n_local <= fields[i].n_global);
    const struct field *f = &fields[i];
    sums[i] = sum_over(comm, checksum(f->data, f->type, f->first, f->n_local, f->width));
  }
  return sums;
}

struct status fields_write(const struct comm *comm, const char *path, const char *kind,
                           const char *meta, const struct field *fields, int n) {
  char tmp[FILE_PATH];
  TRY(file_tmp_name(path, tmp));
  TRY(check_rows(comm, path, fields, n));
  uint64_t *sums = checksums(comm, fields, n);
  struct status s = fine();
  if (comm->rank == 0) s = file_may_write(path, bytes_of(fields, n), true);
  if (comm->rank == 0 && !s.code) s = make_file(tmp, kind, meta, fields, sums, n);
  mem_free(sums);
  TRY(agree(comm, s));
  struct h5_file h5;
  TRY(h5_open_shared(comm, tmp, &h5));
  for (int i = 0; i < n; i++)
    h5_put_rows(comm, &h5, fields[i].name, fields[i].type, fields[i].n_local ? fields[i].first : 0,
                fields[i].n_local, fields[i].data);
  h5_close(&h5);
  s = agree(comm, file_sync(tmp));
  if (comm->rank == 0 && s.code) file_remove(tmp);
  if (comm->rank == 0 && !s.code) s = file_publish(tmp, path);
  file_finished(tmp);
  return agree(comm, s);
}

/* ---- reading ---- */

static struct status check_kind(struct h5_file *h5, const char *kind, char **meta) {
  TRY(h5_check_format(h5, kind, FIELDS_VERSION));
  *meta = h5_text(h5, "/", "meta");
  if (*meta) return fine();
  return failure(EXIT_INPUT, "%s: damaged or incomplete: attribute 'meta' is missing", h5->path);
}

struct status fields_open(const struct comm *comm, const char *path, const char *kind,
                          struct fields_file **file, char **meta) {
  *file = NEW_ZERO(struct fields_file, 1);
  *meta = NULL;
  struct status s = h5_open(path, &(*file)->h5);
  if (!s.code) s = check_kind(&(*file)->h5, kind, meta);
  s = agree(comm, s);
  if (!s.code) return s;
  fields_close(*file);
  mem_free(*meta);
  *file = NULL, *meta = NULL;
  return s;
}

void fields_close(struct fields_file *file) {
  if (!file) return;
  h5_close(&file->h5);
  mem_free(file);
}

static struct status check_shape(struct fields_file *file, const struct field *f) {
  struct h5_shape shape;
  const char *path = file->h5.path;
  if (!h5_shape(&file->h5, f->name, &shape))
    return failure(EXIT_INPUT, "%s: no field '%s'", path, f->name);
  if (shape.type != f->type)
    return failure(EXIT_INPUT, "%s: field '%s' is of type %s, not %s", path, f->name,
                   ftype_name(shape.type), ftype_name(f->type));
  if (shape.n != f->n_global || shape.width != f->width)
    return failure(
        EXIT_INPUT,
        "%s: field '%s' holds %lld x %lld elements, not %lld x %d: another graph or setting?", path,
        f->name, (long long)shape.n, (long long)shape.width, (long long)f->n_global, f->width);
  if (f->first < 0 || f->n_local < 0 || f->first > f->n_global - f->n_local)
    return failure(EXIT_RUNTIME, "%s: field '%s' has no rows %lld..%lld", path, f->name,
                   (long long)f->first, (long long)(f->first + f->n_local));
  return fine();
}

struct status fields_read(const struct comm *comm, struct fields_file *file,
                          const struct field *field) {
  TRY(agree(comm, check_shape(file, field)));
  h5_read_rows(&file->h5, field->name, field->type, field->first, field->n_local, field->width,
               field->data);
  return fine();
}

/* ---- verification ---- */

/* The checksum over rows [first, end), read in pieces. */
static uint64_t checksum_stored(struct h5_file *h5, const char *name, const struct h5_shape *shape,
                                int64_t first, int64_t end) {
  const int64_t row_bytes = shape->width * (int64_t)ftype_bytes(shape->type);
  const int64_t piece = row_bytes < (64 << 20) ? (64 << 20) / row_bytes : 1;
  void *room = mem_alloc(end - first < piece ? end - first : piece, (size_t)row_bytes);
  uint64_t sum = 0;
  for (int64_t at = first; at < end; at += piece) {
    const int64_t n = end - at < piece ? end - at : piece;
    h5_read_rows(h5, name, shape->type, at, n, shape->width, room);
    sum += checksum(room, shape->type, at, n, (int)shape->width);
  }
  mem_free(room);
  return sum;
}

static struct status verify_field(const struct comm *comm, struct h5_file *h5, const char *path,
                                  const char *name) {
  struct h5_shape shape;
  char *stored = h5_text(h5, name, "checksum"), computed[20];
  h5_shape(h5, name, &shape);
  if (!stored || shape.type == F_OTHER || !shape.whole || shape.width > INT32_MAX) {
    mem_free(stored);
    return agree(comm,
                 failure(EXIT_INPUT, "%s: field '%s' is not whole or has no checksum", path, name));
  }
  const int64_t first = shape.n * comm->rank / comm->size,
                end = shape.n * (comm->rank + 1) / comm->size;
  checksum_text(sum_over(comm, checksum_stored(h5, name, &shape, first, end)), computed);
  struct status s = fine();
  if (strcmp(stored, computed))
    s = failure(EXIT_INPUT, "%s: field '%s' is damaged: its checksum is %s, but the file says %s",
                path, name, computed, stored);
  mem_free(stored);
  return agree(comm, s);
}

struct verification {
  const struct comm *comm;
  struct h5_file *h5;
  const char *path;
};

static struct status visit_field(void *self, const char *name) {
  const struct verification *v = self;
  return verify_field(v->comm, v->h5, v->path, name);
}

struct status fields_verify(const struct comm *comm, struct fields_file *file, const char *path) {
  return h5_walk(&file->h5, visit_field, &(struct verification){comm, &file->h5, path});
}
