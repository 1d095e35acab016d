/* The functions that LOCKTOP_CALLS_MATCH chooses. */
#ifndef LOCKTOP_CALL_FILTER_H
#define LOCKTOP_CALL_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

enum { CALL_FILTER_BITS = 17, CALL_WANTED_BIT = 63 };

/* All functions that were looked up: open addressing by address, with CALL_WANTED_BIT for those
 * that are chosen. Without LOCKTOP_CALLS_MATCH there is no table. */
struct call_filter {
    uint64_t *table;
    uint32_t count;
};
extern struct call_filter lt_call_filter;

/* Makes the table if the settings have names. */
void call_filter_init(void);

/* Forgets the functions of code that was unloaded. */
void call_filter_unloaded(uint64_t start, uint64_t end);

NOINLINE bool call_filter_find(uint64_t function);

static ALWAYS_INLINE uint64_t call_filter_hash(uint64_t function)
{
    return function * 0x9e3779b97f4a7c15u >> (64 - CALL_FILTER_BITS);
}

static ALWAYS_INLINE bool call_is_wanted(uint64_t function)
{
    uint64_t entry =
        __atomic_load_n(&lt_call_filter.table[call_filter_hash(function)], __ATOMIC_RELAXED);
    if (LIKELY(entry << 1 == function << 1))
        return entry >> CALL_WANTED_BIT;
    return call_filter_find(function);
}

#pragma GCC visibility pop

#endif
