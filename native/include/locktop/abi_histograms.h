/* The layout of histograms of waits and holds. abi.h includes this file and says what such a file
 * may hold.
 *
 * A histogram counts durations in ticks by bucket. Each power of two has four buckets, which are
 * 14 % to 25 % wide. The buckets 0 to 3 are one tick wide. Bucket b from 4 on begins at
 * (4 + b % 4) << (b / 4 - 1) ticks. A line has the counts of 14 buckets that follow each other, so
 * a lock needs few lines. */
#ifndef LOCKTOP_ABI_HISTOGRAMS_H
#define LOCKTOP_ABI_HISTOGRAMS_H

#include <stdint.h>

enum {
    LT_BUCKETS = 252,     /* of a histogram */
    LT_LINE_BUCKETS = 14, /* of a line */
    LT_LINE_KIND_SHIFT = 32,
    LT_LINE_PART_SHIFT = 40,
    LT_LINE_NUMBER_SHIFT = 48,
    LT_LINE_CARRY_BITS = 31 /* a count with LT_LINE_CARRY counts for 2^31 */
};

/* Bits: a line counts waits or holds, and perhaps with LT_LINE_CARRY. */
enum lt_line_part {
    LT_LINE_WAITS = 0, /* the waits in lt_waits.contended */
    LT_LINE_HOLDS = 1, /* the holds in hold_sampled and hold_contended */
    LT_LINE_CARRY = 2
};

/* The key is a lock's id, enum lt_kind << LT_LINE_KIND_SHIFT, enum lt_line_part <<
 * LT_LINE_PART_SHIFT and (first bucket / LT_LINE_BUCKETS + 1) << LT_LINE_NUMBER_SHIFT. The kind of
 * "other locks" is LT_KIND_MUTEX. */
struct lt_histogram_line {
    uint64_t key;        /* 0: empty */
    uint32_t counts[14]; /* LT_LINE_BUCKETS */
};

/* A line of more than one thread. */
struct lt_line_sum {
    uint64_t key;  /* without LT_LINE_CARRY */
    uint32_t next; /* index + 1 of the lock's next line, 0 none */
    uint32_t reserved;
    uint64_t counts[14]; /* LT_LINE_BUCKETS */
};

/* The histograms of one thread: a table with open addressing. */
struct lt_histograms {
    uint64_t lines;    /* offset of `capacity` struct lt_histogram_line, 0 none */
    uint32_t capacity; /* a power of two */
    uint32_t count;
    uint64_t left_out; /* waits and holds that found no room for a line */
};

#endif
