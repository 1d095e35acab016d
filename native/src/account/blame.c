/* Charges waits for a lock to the thread that holds the lock. */
#include "account/blame.h"

#include "base/tls.h"
#include "tables/held_list.h"
#include "tables/stack_table.h"
#include "tables/thread_table.h"

/* The ticks that a word has collected by `now`. Negative if the waits began a moment later. */
static inline int64_t sum(uint64_t word, uint64_t now)
{
    uint64_t units = (word & WAITS_MASK) * now - (word >> LT_WAITS_BITS);
    return (int64_t)(units << LT_WAITS_BITS) >> LT_WAITS_BITS;
}

struct blame_due blame_take(uint32_t id, uint64_t now, uint64_t since, bool shared)
{
    struct blame_due result = {.waiters = 1};
    struct lt_lock *lock = id ? array_at(&lt_shm->locks, id) : NULL;
    if (!lock)
        return result;
    fetch_to_write(lock);
    uint64_t word = __atomic_load_n(&lock->waits, __ATOMIC_RELAXED);
    int64_t due = word ? sum(word, blame_units(now)) : 0;
    if (due <= 0)
        return result;
    if (word & WAITS_MASK)
        result.waiters = (uint32_t)(word & WAITS_MASK);
    int64_t charged = due;
    if (since) {
        int64_t limit = (int64_t)(result.waiters * (blame_units(now) - blame_units(since)));
        charged = due < limit ? due : limit;
    }
    if (charged < 0)
        charged = 0;
    result.has_new = word & WAITS_NEW;
    uint64_t taken = (uint64_t)(shared ? charged : due) << LT_WAITS_BITS;
    uint64_t no_longer_new = shared ? 0 : word & WAITS_NEW;
    __atomic_fetch_add(&lock->waits, taken - no_longer_new, __ATOMIC_RELAXED);
    result.ticks = (uint64_t)charged << lt_clock.wait_shift;
    return result;
}

/* The call site becomes a stack of one frame. If the thread waited for another lock meanwhile, that
 * lock's id is the second frame. */
void blame_charge(struct lt_thread *t, uint32_t id, uint64_t site, uint32_t through, uint64_t ticks)
{
    if ((lt_own.mode & LEVEL_MASK) < LT_LEVEL_CONTENDED)
        return;
    uint64_t frames[] = {site, through};
    uint32_t mode = thread_busy(t);
    site_add(t, id | LT_SITE_BLAME, site || through ? stack_id(frames, through ? 2 : 1) : 0, ticks);
    thread_ready(t, mode);
}

void blame_charge_held(struct lt_thread *t, uint32_t bytes, uint32_t through, uint64_t now)
{
    enum { MAX_LOCKS = 16 };
    for (int i = 0; i < MAX_LOCKS && bytes; i++) {
        bytes -= (uint32_t)sizeof(struct lt_held);
        const struct lt_held *held = held_at(t, bytes);
        if (!blame_is_due(held->lock))
            continue;
        struct blame_due due =
            blame_take(held->lock, now, blame_since(held), blame_is_shared(held));
        if (due.ticks)
            blame_charge(t, held->lock, held->site, through, due.ticks);
    }
}
