/* Defines the option --watchdog and starts the watchdog by it. */
#include "watchdog_option.h"

struct option watchdog_option(double *seconds) {
  return (struct option){.name = "watchdog",
                         .kind = OPTION_REAL,
                         .value = "SECONDS",
                         .help = "end the job after so long without progress, ten times as long "
                                 "within a file or a merge; 0: never. "
                                 "Without this option 300, and less where nothing can move any "
                                 "more: 15 when a rank of the host is "
                                 "stopped, 20 (or 20 times the longest so far) when all stand "
                                 "within a training or simulation step",
                         .to = seconds};
}

struct status watchdog_check(double seconds) {
  if (seconds >= 0 || seconds == WATCHDOG_CHOSEN) return fine();
  return failure(EXIT_USAGE, "--watchdog %g: it must not be negative", seconds);
}

struct status watchdog_begin(double seconds) {
  TRY(watchdog_check(seconds));
  watchdog_start(watchdog_rule(seconds));
  return fine();
}
