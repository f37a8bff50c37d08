/* Objects by their path: what is there, of which kind, under which names. */
#include "inside.h"
#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A link that cannot be looked up is not a missing one, unless it would lie
 * below what is no group. */
static bool has_link(struct h5_file *file, const char *path) {
  const htri_t found = H5Lexists(file->id, path, h5_links(file));
  const char *slash = strrchr(path, '/');
  if (found >= 0) return found > 0;
  if (slash && slash > path) {
    char above[1024];
    snprintf(above, sizeof above, "%.*s", (int)(slash - path), path);
    const hid_t object = CHECK_H5(file, above, H5Oopen(file->id, above, h5_links(file)));
    const bool is_group = H5Iget_type(object) == H5I_GROUP;
    H5Oclose(object);
    if (!is_group) return false;
  }
  return CHECK_H5(file, path, H5Lexists(file->id, path, h5_links(file))) > 0;
}

/* Looks at each step of the path, as the library requires. */
bool h5_has(struct h5_file *file, const char *path) {
  char part[1024];
  if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part) return false;
  for (char *at = part + (*part == '/');; at++) {
    if (*at && *at != '/') continue;
    const char kept = *at;
    *at = 0;
    if (strcmp(part, "/") && *part && !has_link(file, part)) return false;
    *at = kept;
    if (!kept) return true;
  }
}

bool h5_is_kind(struct h5_file *file, const char *path, H5I_type_t kind) {
  if (!h5_has(file, path)) return false;
  const hid_t object = CHECK_H5(file, path, H5Oopen(file->id, path, h5_links(file)));
  const bool is = H5Iget_type(object) == kind;
  H5Oclose(object);
  return is;
}

bool h5_is_group(struct h5_file *file, const char *path) {
  return h5_is_kind(file, path, H5I_GROUP);
}

void h5_link(struct h5_file *file, const char *path, const char *second) {
  CHECK_H5(file, second,
           H5Lcreate_hard(file->id, path, file->id, second, H5P_DEFAULT, H5P_DEFAULT));
}

/* More than any file of ours holds: groups within themselves would have no end. */
enum { MOST_OBJECTS = 10000, DEEPEST = 16 };

struct members {
  char **name;
  int64_t n, room;
};

static herr_t take_member(hid_t group, const char *name, const H5L_info_t *info, void *to) {
  (void)group, (void)info;
  struct members *m = to;
  if (m->n == m->room) return -1; /* more than the group said */
  m->name[m->n++] = mem_string(name);
  return 0;
}

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In the library's own order, sorted here: it crashes when it fails to sort
 * those of a damaged group. */
char **h5_members(struct h5_file *file, const char *path) {
  const hid_t group = CHECK_H5(file, path, H5Oopen(file->id, path, h5_links(file)));
  if (H5Iget_type(group) != H5I_GROUP) h5_refuse(file, path, "is not a group");
  H5G_info_t info;
  CHECK_H5(file, path, H5Gget_info(group, &info));
  if (info.nlinks > MOST_OBJECTS)
    h5_refuse(file, path, "holds too many objects to be a group of ours");
  struct members m = {.name = NEW_ZERO(char *, (int64_t)info.nlinks + 1),
                      .room = (int64_t)info.nlinks};
  hsize_t at = 0;
  CHECK_H5(file, path, H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, &at, take_member, &m));
  qsort(m.name, (size_t)m.n, sizeof *m.name, by_bytes);
  H5Gclose(group);
  return m.name;
}

struct walk {
  struct h5_file *file;
  struct status (*visit)(void *self, const char *path);
  void *self;
  int seen, depth;
};

static struct status walk_group(struct walk *w, const char *group) {
  struct status s = fine();
  char path[1024], **names = h5_members(w->file, *group ? group : "/");
  for (int i = 0; names[i] && !s.code; i++) {
    if (++w->seen > MOST_OBJECTS || w->depth == DEEPEST)
      h5_refuse(w->file, "/", "holds too many objects, or groups within themselves");
    if (snprintf(path, sizeof path, "%s%s%s", group, *group ? "/" : "", names[i]) >=
        (int)sizeof path)
      continue;
    if (h5_is_kind(w->file, path, H5I_GROUP)) {
      w->depth++;
      s = walk_group(w, path);
      w->depth--;
    } else if (h5_is_kind(w->file, path, H5I_DATASET))
      s = w->visit(w->self, path);
  }
  texts_free(names);
  return s;
}

struct status h5_walk(struct h5_file *file, struct status (*visit)(void *self, const char *path),
                      void *self) {
  return walk_group(&(struct walk){file, visit, self, 0, 0}, "");
}

void texts_free(char **texts) {
  for (char **t = texts; t && *t; t++) mem_free(*t);
  mem_free(texts);
}
