/* Configuration JSON: parsing, --set, typed members. */
#include "fuzz.h"
#include "core/json.h"
#include "core/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = mem_zero((int64_t)size + 1, 1);
  if (size) memcpy(text, data, size);
  json_t *json = NULL;
  if (!json_from_text(text, "fuzz", &json).code) {
    static const char *const known[] = {"threshold", "reset"};
    int64_t n = 0;
    double x = 0;
    bool flag = false;
    uint64_t id;
    json_only_keys(json, "fuzz", known, 2);
    json_take_int(json, "fuzz", "threshold", -5, 5, &n);
    json_take_real(json, "fuzz", "reset", 0, 1, &x);
    json_take_flag(json, "fuzz", "reset", &flag);
    json_big_id(json, "fuzz", &id);
    if (json_is_object(json)) json_set_path(json, text);
    free(json_line(json));
  }
  json_decref(json);
  json = json_object();
  json_set_path(json, text);
  json_decref(json);
  mem_free(text);
  return 0;
}
