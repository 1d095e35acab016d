/* Counts acquisitions and releases, and measures how long threads hold locks. While nobody waits, a
 * lock and an unlock need no clock, no atomic read-modify-write and no system call. */
#ifndef LOCKTOP_HOLD_H
#define LOCKTOP_HOLD_H

#include <stdbool.h>

#include "account/blame.h"
#include "account/taken_units.h"
#include "base/tls.h"
#include "locktop/abi.h"
#include "tables/held_list.h"
#include "tables/histogram.h"
#include "tables/thread_table.h"

/* `counters`: those of the key, or of another lock if the key is not where the hooks look first. */
NOINLINE void acquired_slowly(struct lt_thread *t, uint64_t key, uint32_t type, const void *site,
                              uint16_t flags, struct lt_lock_counters *counters);

/* Counts and lists a lock that was free. Each store here must drain before the program's next
 * atomic operation, so there are few stores. The rare cases are one call at the end, so that the
 * usual case saves few registers. */
static inline void acquired(struct lt_thread *t, uint64_t key, uint32_t type, const void *site,
                            uint16_t flags)
{
    struct lt_lock_counters *table;
    uint64_t home = counters_home(tables_state(t), key, &table);
    struct lt_lock_counters *counters = &table[home];
    if (UNLIKELY(counters->key != key))
        counters = &table[home ^ 1];
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

/* The same for a lock that the thread may already hold: then the lock is one level deeper. */
NOINLINE void acquired_again(struct lt_thread *t, uint64_t key, uint32_t type, const void *site);

/* The same as acquired(), by a reader while a writer waits. Then the time of the acquisition is
 * worth a reading of the clock. */
NOINLINE void acquired_met(struct lt_thread *t, uint64_t key, uint32_t type, const void *site);

NOINLINE void passed_recorded(struct lt_thread *t, struct lt_lock_counters *counters,
                              const void *site);

static inline void count_passed(struct lt_thread *t, struct lt_lock_counters *counters,
                                const void *site)
{
    counters->counts.acquisitions++;
    if (UNLIKELY((lt_own.mode & LEVEL_MASK) == LT_LEVEL_ALL))
        passed_recorded(t, counters, site);
}

/* The thread got what it wanted without a wait, and holds nothing. */
static inline void passed(struct lt_thread *t, uint64_t key, const void *site)
{
    count_passed(t, counters_of(t, key, 0), site);
}

/* The same for a semaphore. */
static inline void sem_passed(struct lt_thread *t, uint64_t key, const void *site)
{
    struct lt_lock_counters *counters = sem_counters_of(t, key);
    if (LIKELY(counters->key)) /* else "other locks" */
        taken_note(counters, taken_at_site(site));
    count_passed(t, counters, site);
}

/* A hold of so many ticks is over, however it began. */
static inline void hold_add_length(struct lt_thread *t, struct lt_lock_counters *counters,
                                   uint64_t ticks)
{
    if (ticks > counters->counts.hold_max)
        counters->counts.hold_max = ticks;
    histogram_add(t, counters, LT_LINE_HOLDS, ticks);
}

/* The same for a hold that began with a wait. */
static inline void hold_add_contended(struct lt_thread *t, struct lt_lock_counters *counters,
                                      uint64_t ticks)
{
    hold_add_length(t, counters, ticks);
    struct lt_waits *waits = waits_of(t, counters);
    waits->hold_contended++;
    waits->hold_contended_ticks += ticks;
}

/* One release: begun before the real unlock, ended after it. */
struct release {
    uint64_t key;
    struct lt_held held; /* key 0: nothing to account for */
    uint64_t end;
    uint64_t hold;        /* ticks, after release_account() */
    struct blame_due due; /* ticks of other threads' waits, to be charged */
    bool accounted;
    bool recorded; /* the hold is to be recorded */
    bool listed;   /* the lock stood in the held list, and this was its last level */
    /* the lock stood in the held list with more levels, and has one less now */
    bool shallower;
    struct lt_lock *foreign; /* the lock stood in another thread's list, which is stale now */
};

NOINLINE void release_begin(struct lt_thread *t, uint64_t key, struct release *release);
NOINLINE void release_end(struct lt_thread *t, struct release *release);

/* The part of release_end() that decides when to time the next hold. The part runs before the
 * thread takes the lock again. */
void release_account(struct lt_thread *t, struct release *release);

/* Charges what other threads have waited by now. release_end() and release_undo() do that too, but
 * much later if the thread sleeps in between. */
void release_charge(struct lt_thread *t, struct release *release);

/* The lock was not released after all: restores the state before release_begin(). */
void release_undo(struct lt_thread *t, struct release *release);

static inline bool is_at_level(uint32_t level)
{
    return (lt_own.mode & LEVEL_MASK) >= level;
}

/* lt_lock.waits of a hold that may be recorded and was not contended. Its wait_start is the address
 * of the lock's entry. */
static inline uint64_t lock_waits(const struct lt_held *held)
{
    const struct lt_lock *lock = (const struct lt_lock *)held->wait_start;
    return lock ? __atomic_load_n(&lock->waits, __ATOMIC_RELAXED) : 0;
}

/* Whether a thread waited for the lock at the release, or began to wait during the hold. */
static inline bool somebody_waited(const struct lt_held *held)
{
    uint64_t waits = lock_waits(held);
    return waits << (64 - LT_WAITS_BITS) || waits != held->waits;
}

/* Whether no thread waited during the hold, at the level that records only the holds with a waiter.
 */
static inline bool held_is_unmet(const struct lt_held *held)
{
    return (lt_own.mode & LEVEL_MASK) == LT_LEVEL_BLOCKS && !held->depth &&
           (held->flags & ~LT_HELD_SHARED) == LT_HELD_RECORDED && !somebody_waited(held);
}

/* Most releases: of the lock taken last, with nothing to time or to record. False if there is more
 * to do. */
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

/* The same for a lock that does not itself show that a thread waits for it. */
static inline bool released_unmet(struct lt_thread *t, uint64_t key)
{
    uint32_t below;
    const struct lt_held *last = held_last(t, &below);
    return !(last && blame_is_due(last->lock)) && released(t, key);
}

/* Every other release: unlocks `lock` by `unlock` and returns its result; 0 if the lock was
 * released. */
NOINLINE int release_by(struct lt_thread *t, uint64_t key, int (*unlock)(void *), void *lock);

#endif
