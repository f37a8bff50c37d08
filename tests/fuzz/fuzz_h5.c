/* Changes datasets and attributes of an HDF5 file by the bytes of a fuzz input. */
#include "fuzz_h5.h"

#include <hdf5.h>
#include <zlib.h>

enum { MOST_NAMES = 160, MOST_CHANGES = 24, MOST_BYTES = 1 << 20, MOST_CHUNKS = 1 << 12 };

/* What the file held in the beginning. */
struct inventory {
  int n;
  char name[MOST_NAMES][96];
};
static struct inventory objects, attributes; /* an attribute: "object@name" */

static herr_t list_attribute(hid_t object, const char *name, const H5A_info_t *info, void *of) {
  (void)object, (void)info;
  if (attributes.n < MOST_NAMES)
    snprintf(attributes.name[attributes.n++], sizeof *attributes.name, "%s@%s", (const char *)of,
             name);
  return 0;
}

static herr_t list_object(hid_t file, const char *name, const H5O_info_t *info, void *unused) {
  (void)info, (void)unused;
  if (objects.n == MOST_NAMES) return 0;
  snprintf(objects.name[objects.n++], sizeof *objects.name, "%s", name);
  H5Aiterate_by_name(file, name, H5_INDEX_NAME, H5_ITER_INC, NULL, list_attribute, (void *)name,
                     H5P_DEFAULT);
  return 0;
}

static uint64_t value_of(struct input *in) {
  static const uint64_t telling[] = {0,
                                     1,
                                     2,
                                     3,
                                     255,
                                     256,
                                     65535,
                                     65536,
                                     262144,
                                     INT32_MAX,
                                     UINT32_MAX,
                                     1ull << 32,
                                     1ull << 40,
                                     INT64_MAX,
                                     1ull << 63,
                                     UINT64_MAX,
                                     0x7FF0000000000000,
                                     0x7FF8000000000001,
                                     0x3FF0000000000000};
  const uint8_t which = take8(in);
  return which < sizeof telling / sizeof *telling ? telling[which]
         : which < 224                            ? which
                                                  : take64(in);
}

static const char *object_of(struct input *in) {
  return objects.name[take8(in) % objects.n];
}

static hid_t type_of(struct input *in) {
  const hid_t plain[] = {H5T_STD_U8LE,   H5T_STD_I16LE, H5T_STD_U16LE, H5T_STD_I32LE,
                         H5T_STD_U32LE,  H5T_STD_I64LE, H5T_STD_U64LE, H5T_STD_I64BE,
                         H5T_IEEE_F32LE, H5T_IEEE_F64LE};
  const uint8_t which = take8(in) % 18;
  const hsize_t three = 3;
  hid_t type;
  if (which < 10) return H5Tcopy(plain[which]);
  switch (which) {
  case 10:
  case 11:
    type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, which == 10 ? 1u + take8(in) : H5T_VARIABLE);
    return type;
  case 12: return H5Tvlen_create(H5T_STD_U32LE);
  case 13: return H5Tarray_create2(H5T_STD_U16LE, 1, &three);
  case 14:
    type = H5Tcreate(H5T_COMPOUND, 12);
    H5Tinsert(type, "a", 0, H5T_STD_I64LE), H5Tinsert(type, "b", 8, H5T_STD_I32LE);
    return type;
  case 15: return H5Tenum_create(H5T_STD_U8LE);
  case 16: return H5Tcreate(H5T_OPAQUE, 1u + take8(in));
  default:
    type = H5Tcopy(H5T_STD_I64LE);
    H5Tset_precision(type, 1u + take8(in) % 63);
    return type;
  }
}

/* ---- one change each ---- */

static size_t bytes_of(hid_t set) {
  const hid_t type = H5Dget_type(set), space = H5Dget_space(set);
  const hssize_t n = H5Sget_simple_extent_npoints(space);
  const bool varies = H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tis_variable_str(type) > 0;
  const size_t bytes = n > 0 && n < MOST_BYTES && !varies ? (size_t)n * H5Tget_size(type) : 0;
  H5Tclose(type), H5Sclose(space);
  return bytes < MOST_BYTES ? bytes : 0;
}

/* The library takes nearly a kilobyte for each chunk that a call touches. */
static bool few_chunks(hid_t set, hid_t made) {
  hsize_t dims[H5S_MAX_RANK], chunk[H5S_MAX_RANK], n = 1;
  if (H5Pget_layout(made) != H5D_CHUNKED) return true;
  const hid_t space = H5Dget_space(set);
  const int rank = H5Sget_simple_extent_dims(space, dims, NULL);
  H5Sclose(space);
  if (H5Pget_chunk(made, H5S_MAX_RANK, chunk) != rank) return false;
  for (int i = 0; i < rank && n <= MOST_CHUNKS; i++) n *= (dims[i] + chunk[i] - 1) / chunk[i];
  return n <= MOST_CHUNKS;
}

/* Not through filters that only hostile files have here: the library crashes in some of them. */
static bool readable(hid_t set) {
  const hid_t made = H5Dget_create_plist(set);
  bool plain = H5Pget_external_count(made) == 0 && few_chunks(set, made);
  for (int i = 0; i < H5Pget_nfilters(made); i++) {
    unsigned flags, config;
    size_t none = 0;
    const H5Z_filter_t filter =
        H5Pget_filter2(made, (unsigned)i, &flags, &none, NULL, 0, NULL, &config);
    plain = plain && (filter == H5Z_FILTER_DEFLATE || filter == H5Z_FILTER_SHUFFLE);
  }
  H5Pclose(made);
  return plain;
}

static void *contents(hid_t set, size_t bytes) {
  const hid_t type = H5Dget_type(set);
  void *data = calloc(1, bytes + 1);
  if (bytes && readable(set)) H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
  H5Tclose(type);
  return data;
}

static void put_contents(hid_t set, const void *data) {
  const hid_t type = H5Dget_type(set);
  H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
  H5Tclose(type);
}

static void change_element(hid_t file, struct input *in) {
  const hid_t set = H5Dopen2(file, object_of(in), H5P_DEFAULT);
  if (set < 0) return;
  const size_t bytes = bytes_of(set), width = (size_t[]){1, 2, 4, 8}[take8(in) % 4];
  const uint32_t at = take32(in);
  const uint64_t value = value_of(in);
  if (bytes >= width && readable(set)) {
    uint8_t *data = contents(set, bytes);
    memcpy(data + at % (bytes / width) * width, &value, width);
    put_contents(set, data);
    free(data);
  }
  H5Dclose(set);
}

static hid_t shape_of(struct input *in, const hsize_t *before, int rank) {
  hsize_t dims[4];
  const int now = take8(in) % 8 == 0 ? take8(in) % 4 : rank;
  for (int i = 0; i < now; i++) {
    const uint8_t how = take8(in) % 6;
    const hsize_t old = i < rank ? before[i] : 2;
    dims[i] = how == 0   ? old + 1
              : how == 1 ? old / 2
              : how == 2 ? 0
              : how == 3 ? value_of(in) >> 1
                         : old;
  }
  return now ? H5Screate_simple(now, dims, NULL) : H5Screate(H5S_SCALAR);
}

/* Another shape, type, or way of storing under the same name, with as much
 * of the data as there is. */
static void change_dataset(hid_t file, struct input *in) {
  const char *name = object_of(in);
  const hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
  if (set < 0) return;
  hsize_t dims[H5S_MAX_RANK] = {0}, chunk[4] = {1, 1, 1, 1};
  const hid_t old_space = H5Dget_space(set);
  const int rank = H5Sget_simple_extent_dims(old_space, dims, NULL);
  const size_t had = bytes_of(set);
  uint8_t *data = contents(set, had);
  const uint8_t what = take8(in);
  const hid_t type = what & 1 ? type_of(in) : H5Dget_type(set);
  const hid_t space = what & 2 ? shape_of(in, dims, rank < 4 ? rank : 3) : H5Scopy(old_space);
  const hid_t made = H5Pcreate(H5P_DATASET_CREATE);
  const int now = H5Sget_simple_extent_ndims(space);
  if (what & 4 && now > 0 && now < 5) {
    if (what & 8) chunk[0] = 1 + value_of(in) % UINT32_MAX;
    H5Pset_chunk(made, now, chunk);
    if (what & 16) H5Pset_shuffle(made), H5Pset_deflate(made, 1);
    if (what & 32) H5Pset_fletcher32(made), H5Pset_scaleoffset(made, H5Z_SO_INT, 3);
  } else if (what & 64)
    H5Pset_external(made, "canary", 0, H5F_UNLIMITED);
  H5Dclose(set), H5Ldelete(file, name, H5P_DEFAULT);
  const hid_t fresh = H5Dcreate2(file, name, type, space, H5P_DEFAULT, made, H5P_DEFAULT);
  if (fresh >= 0) {
    const size_t bytes = bytes_of(fresh);
    data = realloc(data, (had > bytes ? had : bytes) + 1);
    if (bytes > had) memset(data + had, 0, bytes - had);
    if (bytes && !(what & 128) && readable(fresh)) put_contents(fresh, data);
    H5Dclose(fresh);
  }
  free(data);
  H5Pclose(made), H5Sclose(space), H5Tclose(type), H5Sclose(old_space);
}

static void change_link(hid_t file, struct input *in) {
  const char *name = object_of(in), *other = object_of(in);
  const uint8_t how = take8(in) % 7;
  if (!strcmp(name, ".")) return;
  H5Ldelete(file, name, H5P_DEFAULT);
  hid_t made = -1;
  switch (how) {
  case 1: H5Lcreate_soft(other, file, name, H5P_DEFAULT, H5P_DEFAULT); break;
  case 2: H5Lcreate_external("canary", other, file, name, H5P_DEFAULT, H5P_DEFAULT); break;
  case 3: H5Lcreate_hard(file, other, file, name, H5P_DEFAULT, H5P_DEFAULT); break;
  case 4: made = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT); break;
  case 5: H5Lcreate_soft(name, file, name, H5P_DEFAULT, H5P_DEFAULT); break;
  case 6: {
    char below[128];
    snprintf(below, sizeof below, "%s/%c", other, 'a' + take8(in) % 26);
    H5Lcreate_hard(file, other, file, below, H5P_DEFAULT, H5P_DEFAULT);
  }
  }
  if (made >= 0) H5Gclose(made);
}

/* The attribute's object, and its name in *name. */
static hid_t attribute_of(hid_t file, struct input *in, const char **name) {
  static char text[96];
  snprintf(text, sizeof text, "%s", attributes.name[take8(in) % attributes.n]);
  char *at = strchr(text, '@');
  *at = 0, *name = at + 1;
  return H5Oopen(file, text, H5P_DEFAULT);
}

static void change_attribute(hid_t file, struct input *in) {
  const char *name;
  const hid_t object = attribute_of(file, in, &name);
  if (object < 0) return;
  const uint8_t how = take8(in) % 5;
  uint8_t data[4096] = {0};
  hid_t type = H5T_STD_I64LE, space = H5Screate(how == 3 ? H5S_NULL : H5S_SCALAR);
  const uint64_t value = value_of(in);
  memcpy(data, &value, sizeof value);
  if (how == 1) { /* its own bytes, one of them changed */
    const hid_t old = H5Aopen(object, name, H5P_DEFAULT);
    type = H5Aget_type(old);
    H5Sclose(space), space = H5Aget_space(old);
    const hsize_t bytes = H5Aget_storage_size(old);
    if (bytes && bytes <= sizeof data && H5Aread(old, type, data) >= 0)
      data[take32(in) % bytes] = (uint8_t)value;
    H5Aclose(old);
  } else if (how >= 2)
    type = type_of(in);
  H5Adelete(object, name);
  if (how < 4) {
    const hid_t fresh = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (fresh >= 0 && H5Tget_size(type) <= sizeof data && H5Tdetect_class(type, H5T_VLEN) <= 0 &&
        H5Tis_variable_str(type) <= 0 && how != 3)
      H5Awrite(fresh, type, data);
    if (fresh >= 0) H5Aclose(fresh);
  }
  if (how) H5Tclose(type);
  H5Sclose(space), H5Oclose(object);
}

/* A text attribute: some of its bytes replaced, or all of it by what the input holds. */
static void change_text(hid_t file, struct input *in) {
  const char *name;
  char text[8192] = "";
  const hid_t object = attribute_of(file, in, &name);
  if (object < 0) return;
  const hid_t old = H5Aopen(object, name, H5P_DEFAULT);
  const hid_t type = old >= 0 ? H5Aget_type(old) : -1;
  if (type >= 0 && H5Tget_class(type) == H5T_STRING && H5Aget_storage_size(old) < sizeof text) {
    H5Aread(old, type, text);
    size_t at = take32(in) % (strlen(text) + 1), n = take8(in) % 64;
    const size_t cut = take8(in) % 64, length = strlen(text);
    char rest[8192];
    snprintf(rest, sizeof rest, "%s", text + (at + cut < length ? at + cut : length));
    for (; n && at < sizeof text - 1; n--) text[at++] = (char)take8(in);
    snprintf(text + at, sizeof text - at, "%s", rest);
    const hid_t fresh_type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(fresh_type, strlen(text) + 1), H5Tset_cset(fresh_type, H5T_CSET_UTF8);
    H5Adelete(object, name);
    const hid_t fresh = H5Acreate2(object, name, fresh_type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(fresh, fresh_type, text);
    H5Aclose(fresh), H5Sclose(space), H5Tclose(fresh_type);
  }
  if (type >= 0) H5Tclose(type);
  if (old >= 0) H5Aclose(old);
  H5Oclose(object);
}

/* ---- checksums made right again, so that what lies behind them is reached ---- */

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

static void repair(hid_t set) {
  const size_t bytes = bytes_of(set);
  const hid_t type = H5Dget_type(set);
  const size_t size = H5Tget_size(type);
  uint8_t *data = contents(set, bytes);
  if (bytes && H5Aexists(set, "crc32") > 0) {
    uint32_t sum = (uint32_t)crc32_z(0, data, bytes);
    if (H5Tget_class(type) == H5T_STRING) {
      sum = 0;
      for (size_t at = 0; at < bytes; at += size) {
        sum = (uint32_t)crc32_z(sum, data + at, strnlen((char *)data + at, size));
        sum = (uint32_t)crc32_z(sum, (const uint8_t *)"", 1);
      }
    }
    const hid_t attribute = H5Aopen(set, "crc32", H5P_DEFAULT);
    if (H5Aget_storage_size(attribute) == sizeof sum) H5Awrite(attribute, H5T_STD_U32LE, &sum);
    H5Aclose(attribute);
  }
  if (bytes && size <= 8 && H5Aexists(set, "checksum") > 0) {
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes / size; i++) {
      uint64_t x = 0;
      memcpy(&x, data + i * size, size);
      sum += mix(mix(i + 1) + x);
    }
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)sum);
    const hid_t attribute = H5Aopen(set, "checksum", H5P_DEFAULT), stored = H5Aget_type(attribute);
    if (H5Aget_storage_size(attribute) == sizeof text) H5Awrite(attribute, stored, text);
    H5Tclose(stored), H5Aclose(attribute);
  }
  free(data);
  H5Tclose(type);
}

static void repair_all(hid_t file) {
  for (int i = 0; i < objects.n; i++) {
    const hid_t set = H5Dopen2(file, objects.name[i], H5P_DEFAULT);
    if (set < 0) continue;
    repair(set);
    H5Dclose(set);
  }
}

/* ---- the file as bytes ---- */

static void change_bytes(const char *path, struct input *in) {
  struct stat info;
  FILE *file = fopen(path, "r+b");
  if (!file || fstat(fileno(file), &info) || !info.st_size) abort();
  for (int n = 1 + take8(in) % 16; n && in->left; n--) {
    fseek(file, (long)(take32(in) % (uint32_t)info.st_size), SEEK_SET);
    fputc(take8(in), file);
  }
  if (take8(in) % 8 == 7 && ftruncate(fileno(file), (off_t)(take32(in) % (uint32_t)info.st_size)))
    abort();
  fclose(file);
}

void fuzz_change(const char *path, struct input *in) {
  const uint8_t how = take8(in); /* bit 0: bytes; bit 1: leave the checksums wrong */
  unlink("canary");              /* what files are made to point at */
  const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  if (file < 0) abort();
  objects.n = attributes.n = 0;
  H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, list_object, NULL);
  static void (*const changes[])(hid_t, struct input *) = {
      change_element, change_element, change_dataset, change_link, change_attribute, change_text};
  for (int n = 0; n < MOST_CHANGES && in->left && !(how & 1); n++)
    changes[take8(in) % (sizeof changes / sizeof *changes)](file, in);
  if (!(how & 2)) repair_all(file);
  H5Fclose(file);
  if (how & 1) change_bytes(path, in);
  unlink("canary");
  if (mkfifo("canary", 0600)) abort(); /* whoever follows a file to it hangs: a finding */
}
