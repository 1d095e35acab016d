/* The locks that a thread holds, in the order in which it took them. */
#ifndef LOCKTOP_HELD_H
#define LOCKTOP_HELD_H

#include "thread.h"

/* The list is counted in bytes, not entries: one instruction less on the way to each entry. */
static inline struct lt_held *held_at(struct lt_thread *t, uint32_t bytes)
{
    return (struct lt_held *)((char *)local_of(t)->held + bytes);
}

static inline void held_fill(struct lt_held *held, uint64_t key, uint32_t lock, const void *site,
                             uint16_t flags)
{
    held->key = key;
    held->lock = lock;
    held->depth = 0;
    held->flags = flags;
    held->site = (uint64_t)(uintptr_t)site;
}

/* NULL if there is no room. */
struct lt_held *held_push(struct lt_thread *t, uint64_t key, uint32_t lock, const void *site,
                          uint64_t since, uint16_t flags);

/* The topmost entry of a lock, or NULL. */
struct lt_held *held_find(struct lt_thread *t, uint64_t key);
/* The lock begins a new life: whoever held it before, this thread does not. */
void held_forget(struct lt_thread *t, uint64_t key);

/* Takes an entry out; the order of the others stays. */
void held_remove(struct lt_thread *t, struct lt_held *held);

#endif
