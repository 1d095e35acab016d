/* The state of one thread's tables, in lt_own.tables. */
#ifndef LOCKTOP_TABLES_STATE_H
#define LOCKTOP_TABLES_STATE_H

#include <stdint.h>

#include "locktop/abi.h"

enum {
    TABLE_SIZES = 27, /* a table's capacity is 32 bits, and at least 32 entries */
    LINE_TABLE_SIZES = 7
};

/* Each pair needs the first fields, so they lie in one cache line. */
struct tables_state {
    struct lt_lock_counters *counters;
    uint32_t counters_shift; /* 64 - log2(capacity) */
    uint32_t held_before;    /* bytes of the held list's room that lie before the list */
    struct lt_held *held;
    struct lt_site *sites;
    uint64_t counters_offsets
        [TABLE_SIZES]; /* offsets of the block's tables by size, see thread_table.c */
    uint64_t sites_offsets[TABLE_SIZES];
    struct lt_histogram_line *lines;
    uint64_t lines_offsets[LINE_TABLE_SIZES]; /* of its tables by size, see histogram.c */
    uint32_t lines_refused;                   /* requests until the next attempt to find room */
};

_Static_assert(sizeof(struct tables_state) <= sizeof(((struct lt_own *)0)->tables), "too small");

static inline struct tables_state *tables_state(struct lt_thread *t)
{
    return (struct tables_state *)t->own.tables;
}

#endif
