/* The histograms of a thread: how often its waits and its holds had which length.
 *
 * Only the thread itself writes them, and only where it has read the clock anyway. */
#ifndef LOCKTOP_HISTOGRAM_H
#define LOCKTOP_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/tls.h"
#include "locktop/abi.h"

/* The bucket that counts durations of so many ticks. */
static inline uint32_t bucket_of(uint64_t ticks)
{
    if (ticks < 4)
        return (uint32_t)ticks;
    uint32_t power = 63 - (uint32_t)__builtin_clzll(ticks);
    return (power - 1) * 4 + (uint32_t)(ticks >> (power - 2) & 3);
}

/* Counts a wait that is in lt_waits.contended, or a hold that was timed. */
NOINLINE void histogram_add(struct lt_thread *t, const struct lt_lock_counters *counters,
                            enum lt_line_part part, uint64_t ticks);

/* Makes room for a few more lines, which may be a system call. So the thread must hold none of the
 * locks that it is about to wait for. */
NOINLINE void histogram_make_room(struct lt_thread *t);

static inline bool histogram_is_full(const struct lt_thread *t)
{
    return t->histograms.count >= t->histograms.capacity / 4 * 3;
}

/* Moves the counts of a thread that ended to its locks. */
void histograms_retire(struct lt_thread *t);

/* Empties the table for the block's next thread. */
void histograms_clear(struct lt_thread *t);

#endif
