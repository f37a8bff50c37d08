/* How long the threads of a process spin for each other. */
#ifndef FASCICLE_WAITS_H
#define FASCICLE_WAITS_H

#ifdef __cplusplus
extern "C" {
#endif

/* GCC's OpenMP lets threads spin for each other for several milliseconds before they sleep. Where
 * others use the cores too, the one that is awaited then waits for the core of the one that spins.
 * The library reads how long from the environment, as it is loaded: so the program sets
 * GOMP_SPINCOUNT to some tens of microseconds and starts itself again, once. The user's own
 * GOMP_SPINCOUNT or OMP_WAIT_POLICY stay, and with OMP_NUM_THREADS=1 or one core nothing is done.
 * To be called first, before MPI. */
void waits_settle(char **argv);

#ifdef __cplusplus
}
#endif
#endif
