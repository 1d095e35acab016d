/* The thread's own tables: its figures for each lock, and for each (lock, stack). Written by the
 * thread alone; a table that is nearly full moves to one of twice the size, and its pages go back. */
#ifndef LOCKTOP_TABLES_H
#define LOCKTOP_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock_key.h"
#include "base/tls.h"

NOINLINE struct lt_slot *slot_search(struct lt_thread *t, uint64_t key, uint32_t type);

/* Where in `slots` the search for a key begins; it goes on at place ^ 1. The shift is read first: a
 * signal handler between the two reads may have moved the table to a larger one, in which the old
 * shift is within bounds, but not the other way round. */
static inline uint64_t slot_place(const struct local *local, uint64_t key, struct lt_slot **slots)
{
    uint32_t shift = *(const volatile uint32_t *)&local->slot_shift;
    *slots = *(struct lt_slot *const volatile *)&local->slots;
    return lock_hash(key) >> shift;
}

static inline struct lt_slot *slot_of(struct lt_thread *t, uint64_t key, uint32_t type)
{
    struct lt_slot *slots;
    uint64_t place = slot_place(local_of(t), key, &slots);
    struct lt_slot *slot = &slots[place];
    return LIKELY(slot->key == key) ? slot : slot_search(t, key, type);
}

/* The same for a wait that is about to begin, with room for what is counted of it. A lock that finds
 * no room otherwise gets a place from what is kept for this. */
NOINLINE struct lt_slot *slot_search_waited(struct lt_thread *t, uint64_t key, uint32_t type);

static inline struct lt_slot *slot_of_waited(struct lt_thread *t, uint64_t key, uint32_t type)
{
    struct lt_slot *slots;
    uint64_t place = slot_place(local_of(t), key, &slots);
    struct lt_slot *slot = &slots[place];
    return LIKELY(slot->key == key && slot->own) ? slot : slot_search_waited(t, key, type);
}

/* The slot if the lock is known to the thread, else NULL. Makes nothing. */
struct lt_slot *slot_find(struct lt_thread *t, uint64_t key);

/* The slot, made where the table has room as it is; else NULL. It may interrupt any hook that is not
 * at work in the library, for nothing that is in the table moves. */
struct lt_slot *slot_find_or_fit(struct lt_thread *t, uint64_t key, uint32_t type);

/* What the thread counts of a lock that is waited for. */
NOINLINE struct lt_waits *waits_make(struct lt_thread *t, struct lt_slot *slot);

static inline struct lt_waits *waits_of(struct lt_thread *t, struct lt_slot *slot)
{
    struct lt_waits *waits = (struct lt_waits *)(uintptr_t)slot->own;
    return LIKELY(waits) ? waits : waits_make(t, slot);
}

/* Furnishes a new block with its first table; false if there is no room. */
bool tables_init(struct lt_thread *t);

/* Empties the tables for the block's next thread. */
void tables_clear(struct lt_thread *t);

/* Times the next hold of each lock, whatever was planned. */
void slots_time_next(struct lt_thread *t);

/* Adds to the thread's waits for (lock, stack). */
void site_add(struct lt_thread *t, uint32_t lock, uint32_t stack, uint64_t wait);

#endif
