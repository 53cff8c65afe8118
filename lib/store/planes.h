/* Integers of a column as bytes that compress well: differences of order 0, 1 or 2, zigzag, byte planes (all
 * lowest bytes, then all second ones, …). */
#ifndef PRB_STORE_PLANES_H
#define PRB_STORE_PLANES_H

#include <stddef.h>
#include <stdint.h>

#define PRB_STORE_ORDERS 3
#define PRB_STORE_WIDTH_MAX 8

/* Into out, which has room for count; returns how many bytes the largest has: the width. */
unsigned prb_store_differences(const int64_t *values, size_t count, unsigned order, uint64_t *out);
/* width planes of count bytes. */
void prb_store_planes(const uint64_t *values, size_t count, unsigned width, uint8_t *out);
/* From planes of differences back to the values. */
void prb_store_from_planes(const uint8_t *in, size_t count, unsigned width, unsigned order,
                           uint64_t *out);

#endif
