/* A thread wakes the waiters of a futex. A futex names no holder. But if the futex is a lock, the
 * thread that wakes its waiters has just released the lock. So the thread is charged with the time
 * that the waiters have waited since the last wake (account/blame.h). The library does not know
 * which futexes are locks, and charges all of them. The tool takes what is charged to locks, by the
 * functions of the waiters. A post of a semaphore wakes a waiter, too.
 *
 * If the thread got the word itself by a wait, and has not woken it since, its hold is timed. So is
 * that of a thread's only unit of a semaphore, if threads wait at the post. Each such wake has a
 * record, for the time line. */
#ifndef LOCKTOP_WAKE_H
#define LOCKTOP_WAKE_H

#include <stdbool.h>

#include "account/blame.h"
#include "account/taken_units.h"
#include "base/compiler.h"
#include "base/modes.h"
#include "base/tls.h"
#include "locktop/abi.h"
#include "tables/thread_table.h"

struct wake {
    uint64_t key;
    struct lt_lock_counters *counters; /* of the thread for a futex; NULL if it has none */
    uint32_t lock;                     /* id; 0: nothing to account for */
    uint64_t end;                      /* ticks, when the hold was over */
    uint64_t hold;                     /* ticks; 0: not known */
    struct blame_due due;
};

/* The thread got the word by a wait that ended at `end`. */
static inline void wake_expect(struct lt_lock_counters *counters, uint64_t end)
{
    if (LIKELY(counters->key)) /* else "other locks" */
        counters->woken_at = end;
}

/* The thread had got the word, but wanted to wait for it once more at `start`: it has not had the
 * lock until then. */
static inline void wake_expect_again(struct lt_thread *t, uint64_t key, uint64_t start)
{
    struct lt_lock_counters *counters = counters_find(t, key);
    if (counters && counters->woken_at)
        counters->woken_at = start;
}

/* The thread got a unit of a semaphore by a wait that ended at `end`. */
static inline void unit_expect_post(struct lt_thread *t, const struct lt_lock_counters *counters,
                                    uint64_t end)
{
    struct lt_waits *waits = sem_waits(t, counters);
    if (waits && units_of(&counters->counts) == 1)
        waits->unit_since = end;
}

/* The block of a thread that wakes others. A signal handler may do so: it registers no thread. */
static inline struct lt_thread *waker(void)
{
    uint32_t mode = current_mode();
    return at_rest(mode) ? NULL : ready(mode);
}

/* Before the wake: afterwards a woken thread may run first. Registers no thread and makes nothing,
 * because signal handlers wake, too. Returns whether there is something to account for. */
NOINLINE bool wake_begin(struct lt_thread *t, uint64_t key, struct wake *wake);

/* The same before a post of a semaphore, after the post is counted. A thread that had taken no
 * unit, as a producer of work, held nothing, and is charged with nothing. */
NOINLINE bool wake_begin_post(struct lt_thread *t, uint64_t key, struct wake *wake);

/* After the wake, which the account delays no more. `frame`: FRAME() of the hook. */
NOINLINE void wake_end(struct lt_thread *t, const struct wake *wake, const uintptr_t *frame);

#endif
