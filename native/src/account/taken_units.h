/* Notes where a thread took the units of a semaphore that it has not posted. Such a unit may have
 * leaked. A program posts the unit that it took last, if it took several. So the first of the units
 * is the one that stays. */
#ifndef LOCKTOP_TAKEN_UNITS_H
#define LOCKTOP_TAKEN_UNITS_H

#include <stdint.h>

#include "base/compiler.h"
#include "locktop/abi.h"

/* Acquisitions less posts of a semaphore in its present life. */
static inline int32_t units_of(const struct lt_counts *counts)
{
    uint32_t before = (uint32_t)counts->before - (uint32_t)(counts->before >> 32);
    return (int32_t)((uint32_t)(counts->acquisitions - counts->signals) - before);
}

static inline uint64_t taken_at_site(const void *site)
{
    return (uint64_t)(uintptr_t)site;
}

static inline uint64_t taken_at_stack(uint32_t stack)
{
    return 1ull << LT_TAKEN_STACK_BIT | stack;
}

/* The thread takes a further unit. */
NOINLINE void taken_note_further(struct lt_lock_counters *counters, uint64_t taken_at);

/* To be called before the acquisition is counted. `counters` are of a semaphore. */
static inline void taken_note(struct lt_lock_counters *counters, uint64_t taken_at)
{
    if (LIKELY(units_of(&counters->counts) <= 0))
        counters->taken_at = taken_at;
    else if (UNLIKELY(counters->taken_at != taken_at))
        taken_note_further(counters, taken_at);
}

#endif
