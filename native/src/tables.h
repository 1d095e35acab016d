/* The thread's own tables: its figures for each lock, and for each (lock, stack). Written by the
 * thread alone; a table that is full moves to one of twice the size. */
#ifndef LOCKTOP_TABLES_H
#define LOCKTOP_TABLES_H

#include "thread.h"

NOINLINE struct lt_slot *slot_search(struct lt_thread *t, uint64_t key, uint32_t type);

static inline struct lt_slot *slot_of(struct lt_thread *t, uint64_t key, uint32_t type)
{
    struct local *local = local_of(t);
    struct lt_slot *slot = &local->slots[lock_hash(key) >> local->slot_shift];
    if (LIKELY(slot->key == key))
        return slot;
    return slot_search(t, key, type);
}

/* Adds to the thread's waits for (lock, stack). */
void site_add(struct lt_thread *t, uint32_t lock, uint32_t stack, uint64_t wait);

#endif
