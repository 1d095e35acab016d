/* Whom a lock was waited for: what its waiters wait is charged to the thread that holds it meanwhile.
 *
 * The word lt_lock.waits keeps what all waiters of a lock together have waited and nobody is charged
 * with yet. At the moment t that is n * t - S: n, its lowest bits, is how many wait now; S, the rest,
 * is the sum of the moments at which they began, less those at which others ended. So a wait begins
 * and ends with one addition each. Who gives the lock back is charged with all of it, and S grows by
 * as much; between that and the next one to take it the lock is nobody's, and so is that time. */
#ifndef LOCKTOP_BLAME_H
#define LOCKTOP_BLAME_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "locktop/abi.h"
#include "shm/array.h"
#include "shm/segment.h"

/* Is it of a kind that is held, so that somebody can be to blame? */
static inline bool blame_has_holders(enum lt_kind kind)
{
    enum {
        HELD = 1 << LT_KIND_MUTEX | 1 << LT_KIND_RWLOCK | 1 << LT_KIND_SPIN | 1 << LT_KIND_ONCE |
               1 << LT_KIND_CUSTOM
    };
    return HELD >> kind & 1;
}

#define WAITS_MASK ((1ull << LT_WAITS_BITS) - 1) /* the bits of n */
enum {
    WAITS_MOST = (1 << LT_WAITS_BITS) - 1024
}; /* many may come at once before one sees the others */

/* Of ticks: 48 bits of them have room for weeks that a thousand threads wait. */
static inline uint64_t blame_units(uint64_t ticks)
{
    return ticks >> lt_clock.wait_shift;
}

static inline uint64_t blame_waiter(uint64_t since)
{
    return (blame_units(since) << LT_WAITS_BITS) + 1;
}

/* One more waits for it since `start` (ticks); false if there are too many to be counted. */
static inline bool blame_wait_begins(struct lt_lock *lock, uint64_t start)
{
    uint64_t one = blame_waiter(start);
    uint64_t before = __atomic_fetch_add(&lock->waits, one, __ATOMIC_RELAXED);
    if (LIKELY((before & WAITS_MASK) < WAITS_MOST))
        return true;
    __atomic_fetch_sub(&lock->waits, one, __ATOMIC_RELAXED);
    return false;
}

/* It waits no longer: at `end` it was let in as one of several, or gave up. A wait that was none ends
 * when it began. */
static inline void blame_wait_ends(struct lt_lock *lock, uint64_t end)
{
    __atomic_fetch_sub(&lock->waits, blame_waiter(end), __ATOMIC_RELAXED);
}

/* It waits no longer: it has the lock alone. What was waited since the last holder gave it back is
 * nobody's, and those who wait on do so from now. */
static inline void blame_wait_ends_alone(struct lt_lock *lock, uint64_t end)
{
    uint64_t before = __atomic_load_n(&lock->waits, __ATOMIC_RELAXED), after;
    do {
        uint64_t others = (before - 1) & WAITS_MASK;
        after = (others * blame_units(end) << LT_WAITS_BITS) | others;
    } while (!__atomic_compare_exchange_n(&lock->waits, &before, after, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
}

static inline bool blame_is_waited_for(const struct lt_lock *lock)
{
    return __atomic_load_n(&lock->waits, __ATOMIC_RELAXED) & WAITS_MASK;
}

/* Has anybody waited for it that nobody is charged with? */
static inline bool blame_is_due(uint32_t id)
{
    const struct lt_lock *lock = id ? array_at(&lt_shm->locks, id) : NULL;
    return lock && __atomic_load_n(&lock->waits, __ATOMIC_RELAXED) != 0;
}

/* Returns what is due at `now` of the lock that is given back, in ticks, and takes it from the lock. Where
 * others may hold it too, not more than was waited since this one took it: `since`, 0 not known. */
uint64_t blame_take(uint32_t id, uint64_t now, uint64_t since);

/* When it was taken, where it may be held by several; else 0. */
static inline uint64_t blame_since(const struct lt_held *held)
{
    enum { SINCE_IS_SET = LT_HELD_TIMED | LT_HELD_RECORDED | LT_HELD_MET };
    return held->flags & LT_HELD_SHARED && held->flags & SINCE_IS_SET ? held->since : 0;
}

/* Adds it to what the calling thread, which took the lock at `site`, is charged with: while it waited
 * itself for the lock `through`, 0: for none. */
void blame_charge(struct lt_thread *t, uint32_t id, uint64_t site, uint32_t through,
                  uint64_t ticks);

/* The same with what is due by now of the locks that it lists in the first `bytes` of its held list: before
 * a wait of its own, and after it. */
NOINLINE void blame_charge_held(struct lt_thread *t, uint32_t bytes, uint32_t through,
                                uint64_t now);

#endif
