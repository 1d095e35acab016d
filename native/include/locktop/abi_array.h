/* The growing arrays of the shared memory. A part of abi.h: its rules hold here, too. */
#ifndef LOCKTOP_ABI_ARRAY_H
#define LOCKTOP_ABI_ARRAY_H

#include <stdint.h>

enum { LT_CHUNKS = 26 };

/* An array that grows without moving. Chunk k holds (first << k) elements. So element i lies in
 * chunk c = floor(log2(i / first + 1)), at index i - first * (2^c - 1). An element below `count`
 * may still be zero: a thread is making it. */
struct lt_array {
    uint32_t count;        /* elements handed out */
    uint32_t element_size; /* bytes */
    uint32_t first;        /* elements in chunk 0 */
    uint32_t backed;       /* elements whose pages are reserved */
    uint64_t chunk[26];    /* offsets; LT_CHUNKS of them */
};

#endif
