/* Files that appear whole or not at all: written as PATH.tmp, synced, renamed, the folder synced.
 * Local: one rank does this, and the others learn of it through agree(). */
#ifndef FASCICLE_FILES_H
#define FASCICLE_FILES_H

#include "core/fail.h"
#include "core/types.h"

#include <stdio.h>

enum { FILE_PATH = 4096 };

/* Can PATH be made? EXIT_OUTPUT when its folder is missing or not writable, PATH is a
 * folder, device or pipe, a file of that name exists (unless `force`), or fewer than
 * `bytes` bytes are free there. */
struct status file_may_write(const char *path, int64_t bytes, bool force);

/* EXIT_USAGE when OUTPUT, to be written or replaced, is INPUT, or a file in it where INPUT is a
 * folder: by whatever spelling of the name, symbolic and hard links among them. INPUT may be NULL.
 * To be asked before file_may_write, so that nobody is told to use --force on an input. */
struct status file_not_input(const char *output, const char *input);

/* Whether PATH leads to a file of FOLDER, however either is spelled; at most four folders down. */
bool file_lies_in(const char *path, const char *folder);

/* PATH.tmp, or EXIT_OUTPUT when the name gets too long. For the locked folder of a run. */
struct status file_tmp_name(const char *path, char tmp[FILE_PATH]);

/* PATH.HOST-PID.tmp: for files that two programs may make at once; that of the last one to finish
 * stays, whole. What killed processes of this host left under such names is removed first. */
struct status file_tmp_own(const char *path, char tmp[FILE_PATH]);

/* PATH, a file or a folder, is to go should this process end before its time, as the names of
 * file_tmp_name and file_tmp_own are. */
void file_unfinished(const char *path);
/* It is done with, and stays. */
void file_finished(const char *path);

/* Remove what is unfinished, as far as it is there. Any thread, while the others still write: they
 * find their names gone. */
void files_abandon(void);

/* fsync a file. On a network file system every host that wrote must do so. */
struct status file_sync(const char *path);

/* fsync PATH.tmp, rename it to PATH, fsync the folder. EXIT_OUTPUT with the system's own words; a
 * file that cannot be synced or renamed is removed. */
struct status file_publish(const char *tmp, const char *path);

/* A whole small file, in the same way. */
struct status file_write_whole(const char *path, const void *data, size_t bytes);

/* Text printed in memory first: print to `out`, then the text goes to a file, whole or not at all.
 * The end closes it; without memory for the text it fails and leaves the file as it was. */
struct file_text {
  FILE *out;
  char *text;
  size_t size;
};
void file_text_begin(struct file_text *text);
struct status file_text_end(struct file_text *text, const char *path);

/* Remove PATH; no such file is fine. */
struct status file_remove(const char *path);

/* mkdir -p. */
struct status folder_make(const char *path);

/* Remove a folder and all in it; none of that name is fine. */
struct status folder_remove(const char *path);

/* Remove the files NAME.tmp in a folder: what a killed run left in its own. */
struct status folder_sweep(const char *path);

bool file_exists(const char *path);

#endif
