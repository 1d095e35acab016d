#include "held.h"

#include <string.h>

#include "locks.h"
#include "shm.h"

/* Entries of locks that other threads release may be stale, and would pile up. */
static bool held_drop_foreign(struct lt_thread *t)
{
    uint32_t kept = 0;
    for (uint32_t at = 0; at < t->held_top; at += (uint32_t)sizeof(struct lt_held))
        if (!locks_is_foreign(held_at(t, at)->lock)) {
            *held_at(t, kept) = *held_at(t, at);
            kept += (uint32_t)sizeof(struct lt_held);
        }
    bool dropped = kept < t->held_top;
    __atomic_store_n(&t->held_top, kept, __ATOMIC_RELEASE);
    return dropped;
}

static bool held_grow(struct lt_thread *t)
{
    if (held_drop_foreign(t))
        return true;
    struct local *local = local_of(t);
    uint32_t mode = thread_busy(t);
    uint64_t offset = shm_alloc((uint64_t)t->held_size * 2);
    if (offset) {
        struct lt_held *list = shm_ptr(offset);
        memcpy(list, local->held, t->held_top);
        __atomic_store_n(&t->held, offset, __ATOMIC_RELEASE);
        t->held_size *= 2;
        local->held = list;
    } else {
        t->held_lost++;
    }
    thread_ready(t, mode);
    return offset != 0;
}

struct lt_held *held_push(struct lt_thread *t, uint64_t key, uint32_t lock, const void *site,
                          uint64_t since, uint16_t flags)
{
    if (t->held_top == t->held_size && !held_grow(t))
        return NULL;
    uint32_t top = t->held_top;
    struct lt_held *held = held_at(t, top);
    held_fill(held, key, lock, site, flags);
    held->since = since;
    /* Release: a reader that sees the length sees the entry. */
    __atomic_store_n(&t->held_top, top + (uint32_t)sizeof *held, __ATOMIC_RELEASE);
    if (held_is_lost(held, key)) {
        held_fill(held, key, lock, site, flags);
        held->since = since;
    }
    return held;
}

struct lt_held *held_find(struct lt_thread *t, uint64_t key)
{
    uint32_t at = __atomic_load_n(&t->held_top, __ATOMIC_ACQUIRE);
    while (at > 0) {
        at -= (uint32_t)sizeof(struct lt_held);
        if (held_at(t, at)->key == key)
            return held_at(t, at);
    }
    return NULL;
}

void held_remove(struct lt_thread *t, struct lt_held *held)
{
    uint32_t top = t->held_top;
    char *end = (char *)held_at(t, top);
    if ((char *)(held + 1) > end)
        return; /* a signal handler forked meanwhile, and the child came here first */
    memmove(held, held + 1, (size_t)(end - (char *)(held + 1)));
    __atomic_store_n(&t->held_top, top - (uint32_t)sizeof *held, __ATOMIC_RELEASE);
}

void held_forget(struct lt_thread *t, uint64_t key)
{
    struct lt_held *held;
    while ((held = held_find(t, key)))
        held_remove(t, held);
}
