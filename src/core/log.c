/* Prints lines, warnings, errors and progress, on stderr and into the log file. */
#include "log.h"
#include "fail.h"
#include "pulse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool speaks = true, is_quiet = false;
static FILE *file;
static _Atomic bool bar_shown; /* on the terminal's last line */

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

static void wipe_bar(void) {
  if (bar_shown) fprintf(stderr, "\r\033[K");
  bar_shown = false;
}

static void print(const char *prefix, const char *format, va_list args) {
  char line[2048];
  int n = snprintf(line, sizeof line, "%s", prefix);
  vsnprintf(line + n, sizeof line - (size_t)n, format, args);
  if (!is_quiet) wipe_bar(), fprintf(stderr, "%s\n", line);
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
  while (!fail_speaks())
    pause(); /* another thread is about to end us, and this is what came of it */
  wipe_bar();
  fprintf(stderr, "fascicle: %s\n", text);
  fflush(stderr);
  if (file) fprintf(file, "fascicle: %s\n", text), fflush(file);
}

struct progress progress_start(const char *what, const char *unit, int64_t first, int64_t total) {
  double now = seconds_now();
  return (struct progress){.what = what,
                           .unit = unit,
                           .total = total,
                           .first = first,
                           .started = now,
                           .last_shown = now};
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

enum { BAR = 24, LEAST_BAR = 6, LINE = 512 };

/* The bar takes what room the terminal leaves; a line that wraps could not be wiped. */
static void show_bar(const char *what, double share, const char *text) {
  struct winsize size = {0};
  const bool known =
      !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col > 0 && size.ws_col < LINE;
  const int columns = known ? size.ws_col : LINE;
  const int room = columns - (int)(strlen(what) + strlen("[] ") + 1 + strlen(text)) - 1;
  const int width = room < LEAST_BAR ? 0 : room < BAR ? room : BAR;
  char bar[BAR + 1], line[LINE];
  bar_text(bar, width, share);
  snprintf(line, (size_t)columns, "%s %s%s%s%s", what, width ? "[" : "", bar, width ? "] " : "",
           text);
  fprintf(stderr, "\r\033[K%s", line);
  bar_shown = true;
}

void progress_show(struct progress *p, int64_t done, const char *extra) {
  if (!speaks || is_quiet) return;
  const bool terminal = isatty(STDERR_FILENO);
  const double now = seconds_now(), pause = terminal ? 1 : 10;
  if (now - p->last_shown < pause) return;
  p->last_shown = now;
  const double rate = (double)(done - p->first) / (now - p->started);
  const double share = p->total > 0 ? (double)done / (double)p->total : 0;
  char left[32] = "?", text[LINE / 2];
  if (rate > 0 && p->total > 0) clock_text(left, sizeof left, (double)(p->total - done) / rate);
  snprintf(text, sizeof text, "%5.1f %%  %lld %s  %.4g %s/s  %s left%s%s", 100 * share,
           (long long)done, p->unit, rate, p->unit, left, extra ? "  " : "", extra ? extra : "");
  if (terminal)
    show_bar(p->what, share, text);
  else
    fprintf(stderr, "%s %s\n", p->what, text);
  fflush(stderr);
}

void progress_add(struct progress *p, int64_t more) {
  p->done += more;
  pulse(p->what);
  progress_show(p, p->done, NULL);
}

void progress_wipe(void) {
  wipe_bar();
}

void progress_end(struct progress *p, int64_t done) {
  if (!speaks || is_quiet) return;
  const double time = seconds_now() - p->started;
  log_line("%s: %lld %s in %.3g s (%.4g %s/s)", p->what, (long long)(done - p->first), p->unit,
           time, time > 0 ? (double)(done - p->first) / time : 0, p->unit);
}
