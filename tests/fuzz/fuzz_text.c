/* Texts to learn: byte 0 is how much of the rest makes the vocabulary; all of it is
 * then to be told in it. */
#include "fuzz.h"
#include "core/log.h"
#include "core/mem.h"
#include "train/text.h"

static void tell(const struct text *text, const struct vocabulary *vocabulary) {
  char out[8];
  int32_t *token = NEW(int32_t, text->n);
  if (!text_tokens("fuzz", text, vocabulary, token).code)
    for (int64_t i = 0; i < text->n; i++)
      if (token[i] < 0 || token[i] >= vocabulary->n ||
          vocabulary->code[token[i]] != text->code[i] || !text_encode(text->code[i], out))
        abort();
  mem_free(token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  const size_t known = data[0] < size - 1 ? data[0] : size - 1;
  struct text text, some;
  if (text_decode("fuzz", (const char *)data + 1, (int64_t)size - 1, &text).code) return 0;
  if (!text_decode("fuzz", (const char *)data + 1, (int64_t)known, &some).code) {
    struct vocabulary vocabulary;
    if (!vocabulary_of("fuzz", &some, &vocabulary).code) {
      tell(&text, &vocabulary);
      vocabulary_free(&vocabulary);
    }
    text_free(&some);
  }
  text_free(&text);
  return 0;
}
