/* Element types of arrays in files: little-endian integers and IEEE floats. */
#ifndef FASCICLE_FTYPE_H
#define FASCICLE_FTYPE_H

#include <stddef.h>

enum ftype { F_U8, F_I16, F_U16, F_I32, F_U32, F_I64, F_U64, F_F32, F_F64, F_OTHER };

/* Bytes of one element; 0 for F_OTHER (strings, compounds: not ours). */
size_t ftype_bytes(enum ftype type);

/* "u32", "f64" ... */
const char *ftype_name(enum ftype type);

#endif
