/* Reads and writes lists of texts: of fixed length with a final 0, and a CRC-32 over all of them.
 * Texts of variable length are not read: the library keeps them in a heap without checksums, and a
 * damaged heap makes it write past its memory. */
#include "inside.h"
#include "core/mem.h"

#include <string.h>
#include <zlib.h>

/* Over the texts, each with its final 0. */
static uint32_t checksum(int64_t n, char *const *text) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum = (uint32_t)crc32_z(sum, (const unsigned char *)text[i], strlen(text[i]) + 1);
  return sum;
}

void h5_write_texts(struct h5_file *file, const char *path, int64_t n, char *const *text) {
  size_t longest = 0;
  for (int64_t i = 0; i < n; i++)
    if (strlen(text[i]) > longest) longest = strlen(text[i]);
  const hid_t type = h5_text_type(longest + 1),
              set = h5_make_dataset(file, path, type, n, 1, H5P_DEFAULT);
  char *all = mem_zero(n, longest + 1);
  for (int64_t i = 0; i < n; i++) memcpy(all + (size_t)i * (longest + 1), text[i], strlen(text[i]));
  if (n > 0) CHECK_H5(file, path, H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all));
  mem_free(all);
  H5Tclose(type);
  CHECK_H5(file, path, H5Dclose(set));
  const uint32_t sum = checksum(n, text);
  h5_put_values(file, path, H5_CHECKSUMS, F_U32, 1, &sum);
}

char **h5_read_texts(struct h5_file *file, const char *path) {
  const struct h5_set set = h5_open_set(file, path);
  const struct h5_shape *shape = &set.shape;
  const hid_t type = CHECK_H5(file, path, H5Dget_type(set.id));
  if (!h5_is_fixed_text(type) || shape->rank != 1)
    h5_refuse(file, path, "is not a list of texts of fixed length");
  const int64_t size = (int64_t)H5Tget_size(type);
  h5_check_stored(&set);
  char *all = mem_alloc(shape->n, (size_t)size), **texts = NEW_ZERO(char *, shape->n + 1);
  if (shape->n > 0) CHECK_H5(file, path, H5Dread(set.id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all));
  for (int64_t i = 0; i < shape->n; i++) {
    const size_t length = strnlen(all + i * size, (size_t)size);
    texts[i] = NEW_ZERO(char, (int64_t)length + 1);
    memcpy(texts[i], all + i * size, length);
  }
  mem_free(all);
  H5Tclose(type), h5_close_set(&set);
  int64_t sum;
  if (h5_number(file, path, H5_CHECKSUMS, &sum) && sum != checksum(shape->n, texts))
    h5_refuse(file, path, "the file is damaged: these texts do not match their checksum");
  return texts;
}
