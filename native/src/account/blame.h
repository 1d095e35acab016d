/* Blame: the time of waits for a lock is charged to the thread that holds the lock meanwhile.
 *
 * The word lt_lock.waits keeps the time of all waiters of a lock that no thread is charged with
 * yet. At the moment t that time is n * t - S. n, the lowest bits, is the number of waiters now.
 * The bit above n says that a wait began during the present hold. S, the rest, is the sum of the
 * moments at which waits began, less those at which waits ended. So a wait begins and ends with one
 * addition each. The thread that releases the lock is charged with that time, and S grows by as
 * much. Nobody holds the lock between a release and the next acquisition, and nobody is charged
 * with that time. */
#ifndef LOCKTOP_BLAME_H
#define LOCKTOP_BLAME_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "locktop/abi.h"
#include "locktop/kind_sets.h"
#include "shm/array.h"
#include "shm/segment.h"

/* Whether locks of this kind have holders, who can be to blame. A futex may be a lock. */
static inline bool blame_has_holders(enum lt_kind kind)
{
    return lt_kind_is_in(LT_KINDS_OF_CONTENTION | LT_KINDS_WOKEN, kind);
}

enum {
    WAITS_NEW = LT_WAITS_NEW,
    WAITS_MASK = WAITS_NEW - 1,   /* the bits of n */
    WAITS_MAX = WAITS_NEW - 1024, /* many waits may begin before one of them sees the others */
};

/* Units, of which 48 bits have room for weeks in which a thousand threads wait. */
static inline uint64_t blame_units(uint64_t ticks)
{
    return ticks >> lt_clock.wait_shift;
}

static inline uint64_t blame_waiter(uint64_t since)
{
    return (blame_units(since) << LT_WAITS_BITS) + 1;
}

/* Notes that a wait began during the present hold. `before`: a value of the word. */
static inline void blame_note_new(struct lt_lock *lock, uint64_t before)
{
    if (!(before & WAITS_NEW))
        __atomic_fetch_or(&lock->waits, WAITS_NEW, __ATOMIC_RELAXED);
}

/* One more thread waits for the lock since `start` (ticks). False if there are too many to count.
 * `is_held`: another thread may have the lock. If not, the wait begins during no hold. */
static inline bool blame_wait_begins(struct lt_lock *lock, uint64_t start, bool is_held)
{
    uint64_t waiter = blame_waiter(start);
    uint64_t before = __atomic_fetch_add(&lock->waits, waiter, __ATOMIC_RELAXED);
    if (UNLIKELY((before & WAITS_MASK) >= WAITS_MAX)) {
        __atomic_fetch_sub(&lock->waits, waiter, __ATOMIC_RELAXED);
        return false;
    }
    if (LIKELY(is_held))
        blame_note_new(lock, before);
    return true;
}

/* A wait for the lock ends at `end`: the thread shares the lock with others, or gave up. A call
 * that turned out to be no wait ends when it began. */
static inline void blame_wait_ends(struct lt_lock *lock, uint64_t end)
{
    __atomic_fetch_sub(&lock->waits, blame_waiter(end), __ATOMIC_RELAXED);
}

/* A wait for the lock ends: the thread has the lock alone. Nobody is charged with the waits since
 * the last release. The waits of the remaining waiters count from now. */
static inline void blame_wait_ends_alone(struct lt_lock *lock, uint64_t end)
{
    fetch_to_write(lock);
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

/* Whether there are waits for the lock that no thread is charged with yet. */
static inline bool blame_is_due(uint32_t id)
{
    const struct lt_lock *lock = id ? array_at(&lt_shm->locks, id) : NULL;
    return lock && __atomic_load_n(&lock->waits, __ATOMIC_RELAXED) != 0;
}

/* The ticks that are due at a release. */
struct blame_due {
    uint64_t ticks;
    uint32_t waiters; /* at least 1 */
    bool has_new;     /* a wait began during the hold */
};

/* Takes from the released lock what is due at `now`. The holder is charged with at most the time of
 * its hold for each waiter. The hold began `since` then; 0: not known. A waiter that was woken and
 * has no processor yet waits for the processor. If `shared`, the rest stays for other holders. Else
 * nobody is charged with the rest. */
struct blame_due blame_take(uint32_t id, uint64_t now, uint64_t since, bool shared);

/* When the thread took the lock; 0: not known. */
static inline uint64_t blame_since(const struct lt_held *held)
{
    enum { SINCE_IS_SET = LT_HELD_TIMED | LT_HELD_RECORDED | LT_HELD_MET };
    return held->flags & SINCE_IS_SET ? held->since : 0;
}

static inline bool blame_is_shared(const struct lt_held *held)
{
    return held->flags & LT_HELD_SHARED;
}

/* Charges the calling thread, which took the lock at `site`, with the ticks. `through`: the lock
 * that the thread itself waited for meanwhile, 0 none. */
void blame_charge(struct lt_thread *t, uint32_t id, uint64_t site, uint32_t through,
                  uint64_t ticks);

/* Charges the thread with what is due by now for the locks in the first `bytes` of its held list.
 * Called before the thread waits, and after. */
NOINLINE void blame_charge_held(struct lt_thread *t, uint32_t bytes, uint32_t through,
                                uint64_t now);

#endif
