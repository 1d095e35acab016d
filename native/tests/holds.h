/* Acquisitions and releases of the calling thread, for the tests of holds. */
#ifndef LOCKTOP_TEST_HOLDS_H
#define LOCKTOP_TEST_HOLDS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "account/hold.h"
#include "accounting.h"
#include "base/lock_key.h"
#include "tables/held_list.h"

static inline uint64_t key_number(uint64_t number)
{
    return lock_key(LT_KIND_MUTEX, (void *)(0x60000 + number * 64));
}

static inline void take(struct lt_thread *t, uint64_t key)
{
    acquired(t, key, 0, (void *)SITE, 0);
}

static inline struct lt_held *take_contended(struct lt_thread *t, uint64_t key)
{
    uint64_t now = lt_now();
    struct lt_held *held = held_push(t, key, lock_id(key, 0), (void *)SITE, now - 30000,
                                     LT_HELD_TIMED | LT_HELD_CONTENDED);
    held->wait_start = now - 70000;
    held->wait_ticks = 40000;
    held->stack = 5;
    held->holder = 9;
    return held;
}

/* The real call. Meanwhile a handler may use the room above the list. */
static inline int agree(void *result)
{
    struct lt_thread *t = watched();
    memset(held_at(t, t->held_top), 0xee, 2 * sizeof(struct lt_held));
    return *(int *)result;
}

static inline void release_with(struct lt_thread *t, uint64_t key, int result)
{
    CHECK_EQUAL(release_by(t, key, agree, &result), result);
}

/* The two ways to release: at once, or in two steps around the real call. */
static inline void release_slowly(struct lt_thread *t, uint64_t key, bool succeeds)
{
    struct release release;
    release_begin(t, key, &release);
    memset(held_at(t, t->held_top), 0xee, 2 * sizeof(struct lt_held));
    if (succeeds)
        release_end(t, &release);
    else
        release_undo(t, &release);
}

static inline void release_either(struct lt_thread *t, uint64_t key, int way)
{
    if (way)
        release_slowly(t, key, true);
    else
        release_with(t, key, 0);
}

#endif
