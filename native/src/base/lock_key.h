/* The key of a lock: its address, with its kind in the top byte; and the hash of a key. */
#ifndef LOCKTOP_LOCK_KEY_H
#define LOCKTOP_LOCK_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "locktop/abi.h"
#include "locktop/kind_sets.h"

static inline uint64_t lock_key(enum lt_kind kind, const void *address)
{
    return (uint64_t)(uintptr_t)address | ((uint64_t)kind << LT_KIND_SHIFT);
}

/* Whether the uses of the lock are counted anew in each of its lives. */
static inline bool has_lives(uint64_t key)
{
    return lt_kind_is_in(LT_KINDS_WITH_LIVES, key >> LT_KIND_SHIFT);
}

static inline uint64_t lock_hash(uint64_t key)
{
    return key * 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio (Knuth, TAOCP 6.4) */
}

#endif
