#include "log.h"
#include "fail.h"
#include "watchdog.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool speaks = true, is_quiet = false;
static FILE *file;

void log_start(int rank, bool quiet) {
  speaks = rank == 0;
  is_quiet = quiet;
}

bool log_to_file(const char *path) {
  if (file) fclose(file);
  file = NULL;
  if (!speaks || !path) return true;
  file = fopen(path, "ae");
  return file != NULL;
}

static void print(const char *prefix, const char *format, va_list args) {
  char line[2048];
  int n = snprintf(line, sizeof line, "%s", prefix);
  vsnprintf(line + n, sizeof line - (size_t)n, format, args);
  if (!is_quiet) fprintf(stderr, "%s\n", line);
  if (file) fprintf(file, "%s\n", line), fflush(file);
}

void log_line(const char *format, ...) {
  if (!speaks) return;
  va_list args;
  va_start(args, format);
  print("", format, args);
  va_end(args);
}

void log_warning(const char *format, ...) {
  if (!speaks) return;
  va_list args;
  va_start(args, format);
  print("fascicle: warning: ", format, args);
  va_end(args);
}

void log_error(const char *text) {
  if (!speaks) return;
  while (!fail_speaks()) pause(); /* another thread is about to end us, and this is what came of it */
  fprintf(stderr, "fascicle: %s\n", text);
  fflush(stderr);
  if (file) fprintf(file, "fascicle: %s\n", text), fflush(file);
}

double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void time_utc(char *text) {
  time_t now = time(NULL);
  struct tm utc;
  gmtime_r(&now, &utc);
  strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

struct progress progress_start(const char *what, const char *unit, int64_t first, int64_t total) {
  double now = seconds_now();
  return (struct progress){
      .what = what, .unit = unit, .total = total, .first = first, .started = now, .last_shown = now};
}

/* "1:02:03" or "2:03". */
static void clock_text(char *text, size_t size, double seconds) {
  long s = seconds < 0 ? 0 : seconds > 3.6e8 ? 360000000 : (long)(seconds + 0.5);
  if (s >= 3600)
    snprintf(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  else
    snprintf(text, size, "%ld:%02ld", s / 60, s % 60);
}

static void bar_text(char *bar, int width, double share) {
  for (int i = 0; i < width; i++) bar[i] = i < share * width ? '#' : '.';
  bar[width] = 0;
}

void progress_show(struct progress *p, int64_t done, const char *extra) {
  if (!speaks || is_quiet) return;
  const bool terminal = isatty(STDERR_FILENO);
  const double now = seconds_now(), pause = terminal ? 1 : 10;
  if (now - p->last_shown < pause) return;
  p->last_shown = now;
  const double rate = (double)(done - p->first) / (now - p->started);
  const double share = p->total > 0 ? (double)done / (double)p->total : 0;
  char left[32] = "?", bar[25];
  if (rate > 0 && p->total > 0) clock_text(left, sizeof left, (double)(p->total - done) / rate);
  bar_text(bar, 24, share);
  fprintf(stderr, "%s%s %s%s%s%5.1f %%  %lld %s  %.4g %s/s  %s left%s%s%s", terminal ? "\r\033[K" : "",
          p->what, terminal ? "[" : "", terminal ? bar : "", terminal ? "] " : "", 100 * share,
          (long long)done, p->unit, rate, p->unit, left, extra ? "  " : "", extra ? extra : "",
          terminal ? "" : "\n");
  fflush(stderr);
}

void progress_add(struct progress *p, int64_t more) {
  p->done += more;
  pulse(p->what);
  progress_show(p, p->done, NULL);
}

void progress_wipe(const struct progress *p) {
  if (speaks && !is_quiet && p->last_shown > p->started && isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K");
}

void progress_end(struct progress *p, int64_t done) {
  if (!speaks || is_quiet) return;
  const double time = seconds_now() - p->started;
  if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K");
  log_line("%s: %lld %s in %.3g s (%.4g %s/s)", p->what, (long long)(done - p->first), p->unit, time,
           time > 0 ? (double)(done - p->first) / time : 0, p->unit);
}
