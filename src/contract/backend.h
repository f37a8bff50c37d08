/* Where arrays live and who computes. One table per backend; contract/lif.h, contract/recurrence.h
 * and contract/model.h say what each job's entries promise. The cpu backend is the specification:
 * every other one is held against it.
 *
 * Entries are required, with two exceptions: those under "own memory" are all there if own_memory
 * is set, those under "jobs" if is_built is set, and all NULL otherwise. */
#ifndef FASCICLE_BACKEND_H
#define FASCICLE_BACKEND_H

#include "core/fail.h"
#include "core/types.h"

struct lif_backend;
struct recur_backend;
struct model_backend;

struct backend {
  const char *name;
  bool is_built; /* else this build leaves it out: its start fails and says so */

  /* Choose the device for this rank (rank within the host) or say why there is none: EXIT_DEVICE.
   * Local; call once before anything else. */
  struct status (*start)(int local_rank);
  void (*stop)(void);

  /* One line about the device, for logs and `info`. */
  void (*describe)(char *text, size_t size);

  /* Between host arrays and memory that this backend's entries hand out, behind all work given to
   * it so far; when they return, the host array may be reused (put) or read (get). */
  void (*put)(void *array, const void *host, size_t bytes);
  void (*get)(void *host, const void *array, size_t bytes);

  /* Most bytes this process ever held on the device (cpu: in host arrays). */
  int64_t (*peak)(void);

  /* ---- own memory ---- */

  /* The device has memory of its own beside the host's: a GPU. Without it the arrays of this
   * backend are host arrays, any number of ranks share the device, and the benches measure the
   * host's memory themselves. */
  bool own_memory;

  /* The device's own number, the same for all ranks that use it and no other in the world (a GPU's
   * UUID). */
  void (*identity)(char id[16]);

  /* Bytes of its memory that are free now. */
  int64_t (*free_bytes)(void);

  /* Measured rates of its memory in bytes per second, for the benches' floors: read plus written,
   * and random rows of 128 bytes out of n_rows. */
  double (*copy_rate)(void);
  double (*gather_rate)(int64_t n_rows);

  /* Bytes a second that a plain copy moves from host memory to the device's. */
  double (*upload_rate)(void);

  /* ---- jobs ---- */

  const struct lif_backend *lif;
  const struct recur_backend *recur;
  const struct model_backend *model;
};

#endif
