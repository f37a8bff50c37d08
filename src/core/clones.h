/* Functions marked VECTOR_CLONES are compiled for several x86-64 levels; the loader picks
 * one. Contraction is off, and no sum is reordered, so all levels give the same bits. Not
 * by clang, which wants another form, nor under sanitizers, whose own start-up comes
 * later than that choice. */
#ifndef FASCICLE_CLONES_H
#define FASCICLE_CLONES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTOR_CLONES
#endif

#endif
