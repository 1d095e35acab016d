/* Spin locks. A hook tries the lock first, as for mutexes. A thread that waits for a spin lock
 * runs. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "account/brief_wait.h"
#include "account/hold.h"
#include "account/wait.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "interpose/real.h"
#include "interpose/second_attempt.h"
#include "order/lock_life.h"
#include "order/lock_order.h"
#include "stack/capture.h"
#include "tables/held_list.h"
#include "tables/thread_table.h"

static inline uint64_t key_of(pthread_spinlock_t *l)
{
    return lock_key(LT_KIND_SPIN, (const void *)(uintptr_t)l);
}

/* The word of a free lock (glibc, nptl/pthread_spin_init.c and its form for x86-64). */
#if defined(__x86_64__)
enum { FREE = 1 };
#else
enum { FREE = 0 };
#endif

static bool take_if_free(void *lock)
{
    pthread_spinlock_t *l = lock;
    return *l == FREE && real_pthread_spin_trylock(l) == 0;
}

static NOINLINE int wait_for(struct lt_thread *t, pthread_spinlock_t *l, const uintptr_t *frame)
{
    struct waiting waiting;
    struct wait_for what = {.key = key_of(l)};
    brief_wait_begins(t, &what, frame);
    if (second_attempt((uintptr_t)l >> 6, take_if_free, (void *)(uintptr_t)l, &what.since)) {
        brief_wait_ended(t, &what, what.since, 0, frame);
        return 0;
    }
    wait_begin(t, &waiting, &what, frame);
    int result = real_pthread_spin_lock(l);
    if (result == 0)
        wait_end_holding(&waiting, 0);
    else
        wait_end_refused(&waiting);
    return result;
}

EXPORT int pthread_spin_lock(pthread_spinlock_t *l)
{
    struct lt_thread *t = watched();
    if (!t)
        return real_pthread_spin_lock(l);
    bool is_free = real_pthread_spin_trylock(l) == 0;
    order_before(t, key_of(l), 0, false, FRAME());
    if (UNLIKELY(!is_free))
        return wait_for(t, l, FRAME());
    acquired(t, key_of(l), 0, __builtin_return_address(0), 0);
    return 0;
}

EXPORT int pthread_spin_trylock(pthread_spinlock_t *l)
{
    int result = real_pthread_spin_trylock(l);
    struct lt_thread *t = watched();
    if (t && result == 0)
        acquired(t, key_of(l), 0, __builtin_return_address(0), 0);
    else if (t && result == EBUSY)
        waits_of(t, counters_of(t, key_of(l), 0))->trylock_failed++;
    return result;
}

/* Whether a thread may wait for the lock; to be called by its holder. glibc's spin lock of x86-64
 * counts down from 1, and each waiter makes it less than 0. On other processors the word does not
 * tell. */
static inline bool may_be_waited_for(const pthread_spinlock_t *l)
{
    return *l != 0;
}

static int unlock(void *l)
{
    return real_pthread_spin_unlock(l);
}

EXPORT int pthread_spin_unlock(pthread_spinlock_t *l)
{
    struct lt_thread *t = watched();
    if (!t || LIKELY(may_be_waited_for(l) ? released_unmet(t, key_of(l)) : released(t, key_of(l))))
        return real_pthread_spin_unlock(l);
    return release_by(t, key_of(l), unlock, (void *)l);
}

EXPORT int pthread_spin_init(pthread_spinlock_t *l, int shared)
{
    int result = real_pthread_spin_init(l, shared);
    struct lt_thread *t = watched();
    if (result == 0 && t) {
        lock_life_begins(key_of(l), 0, FRAME());
        held_forget(t, key_of(l));
    }
    return result;
}

EXPORT int pthread_spin_destroy(pthread_spinlock_t *l)
{
    int result = real_pthread_spin_destroy(l);
    if (result == 0 && watched())
        lock_life_ends(key_of(l));
    return result;
}
