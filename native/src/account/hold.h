/* What a lock and an unlock cost when nobody waits: no clock, no atomic read-modify-write, no system
 * call. And how long locks are held. */
#ifndef LOCKTOP_HOLD_H
#define LOCKTOP_HOLD_H

#include <stdbool.h>

#include "account/blame.h"
#include "base/tls.h"
#include "locktop/abi.h"
#include "tables/held_list.h"
#include "tables/thread_table.h"

/* `counters`: of the key, or of another one if it is not where it is looked for. */
NOINLINE void acquired_slowly(struct lt_thread *t, uint64_t key, uint32_t type, const void *site,
                              uint16_t flags, struct lt_slot *counters);

/* The lock was free: counts it and lists it. Each store here must drain before the program's next
 * atomic operation, so there are few; and the rare cases are one call at the end, so that the usual
 * one saves few registers. */
static inline void acquired(struct lt_thread *t, uint64_t key, uint32_t type, const void *site,
                            uint16_t flags)
{
    struct lt_slot *table;
    uint64_t place = counters_home(local_of(t), key, &table);
    struct lt_slot *counters = &table[place];
    if (UNLIKELY(counters->key != key))
        counters = &table[place ^ 1];
    uint64_t acquisitions = counters->counts.acquisitions + 1;
    uint32_t top = t->held_top;
    if (UNLIKELY(counters->key != key || acquisitions >= counters->sample_at ||
                 top == t->held_size)) {
        acquired_slowly(t, key, type, site, flags, counters);
        return;
    }
    counters->counts.acquisitions = acquisitions;
    struct lt_held *held = held_at(t, top);
    held_fill(held, key, counters->lock, site, flags);
    __atomic_store_n(&t->held_top, top + (uint32_t)sizeof(struct lt_held), __ATOMIC_RELEASE);
    if (UNLIKELY(held_is_lost(held, key)))
        held_fill(held, key, counters->lock, site, flags);
}

/* The same of a lock that the thread may have already: then one level deeper. */
NOINLINE void acquired_again(struct lt_thread *t, uint64_t key, uint32_t type, const void *site);

/* The same as acquired(), by a reader while a writer waits: when is worth a reading of the clock. */
NOINLINE void acquired_met(struct lt_thread *t, uint64_t key, uint32_t type, const void *site);

NOINLINE void passed_recorded(struct lt_thread *t, struct lt_slot *counters, const void *site);

/* What was wanted was there, and is nothing to hold. */
static inline void passed(struct lt_thread *t, uint64_t key, const void *site)
{
    struct lt_slot *counters = counters_of(t, key, 0);
    counters->counts.acquisitions++;
    if (UNLIKELY((lt_own.mode & LEVEL_MASK) == LT_LEVEL_ALL))
        passed_recorded(t, counters, site);
}

/* One release on its way: begun before the real unlock, ended after it. */
struct release {
    uint64_t key;
    struct lt_held held; /* key 0: nothing to account for */
    uint64_t end;
    uint64_t hold; /* ticks, once accounted for */
    uint64_t due;  /* ticks that others waited for it meanwhile, to be charged */
    bool accounted;
    bool recorded;           /* its hold is to be recorded */
    bool listed;             /* it stood in the held list, and this was its last level */
    bool shallower;          /* it stood there with more levels, and now has one less */
    struct lt_lock *foreign; /* it stood in the list of another thread, which is stale after this */
};

NOINLINE void release_begin(struct lt_thread *t, uint64_t key, struct release *release);
NOINLINE void release_end(struct lt_thread *t, struct release *release);

/* The part of release_end() that says when to time a hold next: before the lock is taken again. */
void release_account(struct lt_thread *t, struct release *release);

/* Charges what others waited by now: release_end() and release_undo() do, but their turn may be far. */
void release_charge(struct lt_thread *t, struct release *release);

/* It was not released after all: as before release_begin(). */
void release_undo(struct lt_thread *t, struct release *release);

static inline bool is_at_level(uint32_t level)
{
    return (lt_own.mode & LEVEL_MASK) >= level;
}

/* Of a hold that may be recorded, and was not contended: its wait_start tells where the lock's
 * entry lies. */
static inline uint64_t lock_waits(const struct lt_held *held)
{
    const struct lt_lock *lock = (const struct lt_lock *)held->wait_start;
    return lock ? __atomic_load_n(&lock->waits, __ATOMIC_RELAXED) : 0;
}

/* The shortest run of events between two moments at which the lock is free is of interest where two
 * threads met in it: where somebody waited when it was given back, or had begun to in between. */
static inline bool somebody_waited(const struct lt_held *held)
{
    uint64_t waits = lock_waits(held);
    return waits << (64 - LT_WAITS_BITS) || waits != held->waits;
}

/* At a level that records holds during which somebody waited: nobody did. */
static inline bool held_is_unmet(const struct lt_held *held)
{
    return (lt_own.mode & LEVEL_MASK) == LT_LEVEL_BLOCKS && !held->depth &&
           (held->flags & ~LT_HELD_SHARED) == LT_HELD_RECORDED && !somebody_waited(held);
}

/* Most releases: the lock taken last, and nothing to time or to record. True if that was all. */
static inline bool released(struct lt_thread *t, uint64_t key)
{
    uint32_t below;
    const struct lt_held *last = held_last(t, &below);
    if (UNLIKELY(!last || last->key != key))
        return false;
    if (UNLIKELY(!held_is_simple(last) && !held_is_unmet(last)))
        return false;
    held_pop(t, below);
    return true;
}

/* The same where the lock itself does not show that somebody waits for it. */
static inline bool released_unmet(struct lt_thread *t, uint64_t key)
{
    uint32_t below;
    const struct lt_held *last = held_last(t, &below);
    return !(last && blame_is_due(last->lock)) && released(t, key);
}

/* Every other release: gives `lock` back by `unlock`, whose result it returns; 0 if it was released. */
NOINLINE int release_by(struct lt_thread *t, uint64_t key, int (*unlock)(void *), void *lock);

#endif
