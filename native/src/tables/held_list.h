/* The held list: the locks that a thread holds, in the order in which the thread took them. */
#ifndef LOCKTOP_HELD_LIST_H
#define LOCKTOP_HELD_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/tls.h"
#include "tables/tables_state.h"

/* The list is counted in bytes, not in entries: that saves one instruction on the way to an
 * entry. */
static inline struct lt_held *held_at(struct lt_thread *t, uint32_t bytes)
{
    return (struct lt_held *)((char *)tables_state(t)->held + bytes);
}

/* The hooks store and test lock, depth and flags as one word: lock lowest, flags highest. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ &&
                   offsetof(struct lt_held, depth) == offsetof(struct lt_held, lock) + 4 &&
                   offsetof(struct lt_held, flags) == offsetof(struct lt_held, lock) + 6,
               "how held_fill() and held_is_simple() see an entry");

static inline void held_fill(struct lt_held *held, uint64_t key, uint32_t lock, const void *site,
                             uint16_t flags)
{
    uint64_t word = lock | (uint64_t)flags << 48;
    held->key = key;
    memcpy((char *)held + offsetof(struct lt_held, lock), &word, sizeof word);
    held->site = (uint64_t)(uintptr_t)site;
}

/* The entry is not recursive, not timed, and has no wait and no records to account for. */
static inline bool held_is_simple(const struct lt_held *held)
{
    uint32_t depth_and_flags;
    memcpy(&depth_and_flags, (const char *)held + offsetof(struct lt_held, depth),
           sizeof depth_and_flags);
    return !(depth_and_flags & ~((uint32_t)LT_HELD_SHARED << 16));
}

/* Whether a signal handler that took locks wrote over an entry before the top rose above the entry.
 * After the top has risen, no handler will. */
static inline bool held_is_lost(const struct lt_held *held, uint64_t key)
{
    return *(const volatile uint64_t *)&held->key != key;
}

/* Makes room for one more entry; false if there is none. */
NOINLINE bool held_grow(struct lt_thread *t);

/* Adds an entry and returns it; NULL if there is no room. */
static inline struct lt_held *held_push(struct lt_thread *t, uint64_t key, uint32_t lock,
                                        const void *site, uint64_t since, uint16_t flags)
{
    if (UNLIKELY(t->held_top == t->held_size) && !held_grow(t))
        return NULL;
    uint32_t top = t->held_top;
    struct lt_held *held = held_at(t, top);
    held_fill(held, key, lock, site, flags);
    held->since = since;
    /* Release: a reader that sees the length sees the entry. */
    __atomic_store_n(&t->held_top, top + (uint32_t)sizeof *held, __ATOMIC_RELEASE);
    if (UNLIKELY(held_is_lost(held, key))) {
        held_fill(held, key, lock, site, flags);
        held->since = since;
    }
    return held;
}

/* The entry of the lock taken last, or NULL. `below`: the length of the list without that entry. */
static inline struct lt_held *held_last(struct lt_thread *t, uint32_t *below)
{
    uint32_t top = __atomic_load_n(&t->held_top, __ATOMIC_RELAXED);
    *below = top - (uint32_t)sizeof(struct lt_held);
    return LIKELY(top) ? held_at(t, *below) : NULL;
}

/* Removes the last entry. The length is `below`, not the present length less one. The child of a
 * bare clone() may share the list and have removed the same entry. */
static inline void held_pop(struct lt_thread *t, uint32_t below)
{
    __atomic_store_n(&t->held_top, below, __ATOMIC_RELAXED);
}

/* An entry of the lock, or NULL. In a list of less than 64 entries, the topmost one. */
struct lt_held *held_find(struct lt_thread *t, uint64_t key);
/* A new life of the lock begins: this thread no longer holds the lock. */
void held_forget(struct lt_thread *t, uint64_t key);

/* Whether another thread lists the lock as held, or ended while it did. */
bool held_by_others(uint64_t key, const struct lt_thread *except);

/* Removes an entry; the order of the other entries stays. */
void held_remove(struct lt_thread *t, struct lt_held *held);

#endif
