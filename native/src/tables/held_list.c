/* The held list of a thread: growing, searching, removing. */
#include "tables/held_list.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "shm/arena.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "tables/lock_table.h"

enum { MANY = 64 * sizeof(struct lt_held) }; /* bytes of a list that counts as long */

/* Drops the entries of locks that other threads release: such entries may be stale, and would pile
 * up. */
static bool held_drop_foreign(struct lt_thread *t)
{
    uint32_t kept = 0;
    for (uint32_t offset = 0; offset < t->held_top; offset += (uint32_t)sizeof(struct lt_held))
        if (!lock_is_distrusted(held_at(t, offset)->lock)) {
            *held_at(t, kept) = *held_at(t, offset);
            kept += (uint32_t)sizeof(struct lt_held);
        }
    bool dropped = kept < t->held_top;
    __atomic_store_n(&t->held_top, kept, __ATOMIC_RELEASE);
    return dropped;
}

/* Moves the beginning of the list by `bytes`, which are no longer in use, or are in use again. */
static void held_move(struct lt_thread *t, int32_t bytes)
{
    struct tables_state *state = tables_state(t);
    state->held = (struct lt_held *)((char *)state->held + bytes);
    state->held_before += (uint32_t)bytes;
    t->held += (uint64_t)(int64_t)bytes;
    t->held_size -= (uint32_t)bytes;
    __atomic_store_n(&t->held_top, t->held_top - (uint32_t)bytes, __ATOMIC_RELEASE);
}

/* Moves the list back to the beginning of its room if that gains enough. */
static bool held_rewind(struct lt_thread *t)
{
    uint32_t before = tables_state(t)->held_before, top = t->held_top;
    if (before < t->held_size)
        return false;
    memmove((char *)tables_state(t)->held - before, tables_state(t)->held, top);
    held_move(t, -(int32_t)before);
    __atomic_store_n(&t->held_top, top, __ATOMIC_RELEASE);
    return true;
}

/* The old list keeps its pages: held_by_others() may be reading it in another thread. */
static bool held_enlarge(struct lt_thread *t)
{
    struct tables_state *state = tables_state(t);
    uint64_t old_size = t->held_size + state->held_before;
    uint64_t offset = shm_alloc(2 * old_size);
    if (!offset) {
        t->held_lost++;
        return false;
    }
    struct lt_held *list = shm_ptr(offset);
    memcpy(list, state->held, t->held_top);
    __atomic_store_n(&t->held, offset, __ATOMIC_RELEASE);
    t->held_size = (uint32_t)(2 * old_size);
    state->held = list;
    state->held_before = 0;
    return true;
}

bool held_grow(struct lt_thread *t)
{
    if (held_drop_foreign(t))
        return true;
    uint32_t mode = thread_busy(t);
    bool grown = held_rewind(t) || held_enlarge(t);
    thread_ready(t, mode);
    return grown;
}

/* Searches a long list from both ends: programs often release first the lock that they took
 * first. */
struct lt_held *held_find(struct lt_thread *t, uint64_t key)
{
    uint32_t top = __atomic_load_n(&t->held_top, __ATOMIC_ACQUIRE), bottom = 0;
    while (top > bottom) {
        top -= (uint32_t)sizeof(struct lt_held);
        if (held_at(t, top)->key == key)
            return held_at(t, top);
        if (top - bottom < MANY)
            continue;
        if (held_at(t, bottom)->key == key)
            return held_at(t, bottom);
        bottom += (uint32_t)sizeof(struct lt_held);
    }
    return NULL;
}

/* In a long list the shorter part moves. In a short list the beginning stays. A signal handler that
 * releases its locks must not move it away from the hook that the handler interrupted. */
void held_remove(struct lt_thread *t, struct lt_held *held)
{
    uint32_t top = t->held_top;
    struct lt_held *begin = held_at(t, 0), *end = held_at(t, top);
    if (LIKELY(held + 1 == end)) {
        held_pop(t, top - (uint32_t)sizeof *held);
        return;
    }
    if (held + 1 > end)
        return; /* a signal handler forked meanwhile, and the child came here first */
    if (top >= MANY && held - begin < end - held) {
        uint32_t mode = thread_busy(t);
        memmove(begin + 1, begin, (size_t)((char *)held - (char *)begin));
        held_move(t, sizeof *held);
        thread_ready(t, mode);
        return;
    }
    memmove(held, held + 1, (size_t)((char *)end - (char *)(held + 1)));
    __atomic_store_n(&t->held_top, top - (uint32_t)sizeof *held, __ATOMIC_RELEASE);
}

void held_forget(struct lt_thread *t, uint64_t key)
{
    struct lt_held *held;
    while ((held = held_find(t, key)))
        held_remove(t, held);
}

bool held_by_others(uint64_t key, const struct lt_thread *except)
{
    uint32_t count = __atomic_load_n(&lt_shm->threads.count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        struct lt_thread *t = array_at(&lt_shm->threads, i);
        uint32_t state = __atomic_load_n(&t->state, __ATOMIC_ACQUIRE);
        bool may_hold =
            state == LT_THREAD_LIVE || state == LT_THREAD_EXITING || state == LT_THREAD_KEPT;
        if (t != except && may_hold && held_find(t, key))
            return true;
    }
    return false;
}
