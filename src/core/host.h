/* Where this process runs, and what its launcher says of it: known before MPI is up. */
#ifndef FASCICLE_HOST_H
#define FASCICLE_HOST_H

#ifdef __cplusplus
extern "C" {
#endif

/* The name of this host; "?" where it has none. Any thread. */
struct host {
  char name[256];
};
struct host host_here(void);

/* The number of tasks that the launcher promised, and the variables that say so and which of them
 * we are (NULL: unknown); 0 when there was no launcher. */
int host_promised_tasks(const char **variable, const char **rank);

/* The rank that the launcher says we are, for the time before MPI is up; 0 without a launcher. */
int host_launched_rank(void);

#ifdef __cplusplus
}
#endif
#endif
