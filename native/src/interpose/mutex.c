/* Mutexes. A hook tries the lock first. If that succeeds no thread waited, and the rest is a
 * counter and the held list. Else a second attempt may get the lock soon (second_attempt.h). Else
 * the real function decides, as it would without the library. glibc's lock begins with the very
 * same attempt, and lets a thread overtake sleeping waiters too. So results do not change.
 * mutex_fast_path.h has what happens in nearly every call. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "account/blame.h"
#include "account/brief_wait.h"
#include "account/hold.h"
#include "account/misuse.h"
#include "account/wait.h"
#include "base/tls.h"
#include "interpose/fast_mutex.h"
#include "interpose/mutex_fast_path.h"
#include "interpose/real.h"
#include "interpose/second_attempt.h"
#include "order/lock_cookie.h"
#include "order/lock_life.h"
#include "order/lock_order.h"
#include "stack/capture.h"
#include "tables/held_list.h"
#include "tables/lock_table.h"
#include "tables/thread_table.h"

/* Bits of __kind and of the lock word (glibc, nptl/pthreadP.h and futex(2)). */
enum { ROBUST = 16, PROTECT = 64, PSHARED = 128 };
enum { OWNER_MASK = 0x3fffffffu, CEILING_MASK = 0xfff80000u };

enum form { LOCK, TIMED, CLOCK };

struct call {
    enum form form;
    clockid_t clock;
    const struct timespec *until;
};

static inline bool holds(int result)
{
    /* robust: the thread took the mutex over from a dead thread */
    return result == 0 || result == EOWNERDEAD;
}

/* The dead thread's list names the mutex for ever. */
static inline int with_owner_died(pthread_mutex_t *m, int result)
{
    if (UNLIKELY(result == EOWNERDEAD))
        lock_distrust(mutex_key(m));
    return result;
}

static inline void taken(struct lt_thread *t, pthread_mutex_t *m, const void *site)
{
    uint32_t type = (uint32_t)m->__data.__kind;
    if (UNLIKELY((type & 3) == PTHREAD_MUTEX_RECURSIVE_NP))
        acquired_again(t, mutex_key(m), type, site);
    else
        acquired(t, mutex_key(m), type, site, 0);
}

static int call_real(pthread_mutex_t *m, const struct call *call)
{
    switch (call->form) {
    case TIMED: return real_pthread_mutex_timedlock(m, call->until);
    case CLOCK: return real_pthread_mutex_clocklock(m, call->clock, call->until);
    default: return real_pthread_mutex_lock(m);
    }
}

static bool take_if_free(void *lock)
{
    pthread_mutex_t *m = lock;
    return !__atomic_load_n(&m->__data.__lock, __ATOMIC_RELAXED) &&
           mutex_take(m, mutex_kind(m), lt_own.tid);
}

/* Whether a second attempt may be made at a mutex that was not free. A time limit is the program's
 * to use up. A mutex that other processes share may be held by one that stands still. */
static inline bool may_try_again(const pthread_mutex_t *m, const struct call *call)
{
    int kind = mutex_kind(m);
    return call->form == LOCK && lt_own.tid && mutex_is_plain(kind) && !(kind & PSHARED) &&
           (uint32_t)m->__data.__owner != lt_own.tid;
}

static NOINLINE int wait_for(struct lt_thread *t, pthread_mutex_t *m, const struct call *call,
                             const uintptr_t *frame)
{
    struct waiting waiting;
    struct wait_for what = {.key = mutex_key(m),
                            .type = (uint32_t)m->__data.__kind,
                            .holder = (uint32_t)m->__data.__owner,
                            .flags = (call->form == LOCK ? 0u : LT_WAIT_TIMED) |
                                     (m->__data.__kind & PSHARED ? LT_WAIT_PSHARED : 0u)};
    if (may_try_again(m, call)) {
        brief_wait_begins(t, &what, frame);
        if (second_attempt((uintptr_t)m >> 6, take_if_free, m, &what.since)) {
            brief_wait_ended(t, &what, what.since, 0, frame);
            return 0;
        }
    }
    what.holder = (uint32_t)m->__data.__owner; /* there may be another one by now */
    if (UNLIKELY(what.holder == t->tid))       /* a recursive mutex would not be waited for */
        misuse_note(t, LT_MISUSE_TAKEN_AGAIN, mutex_key(m), t->tid, frame);
    wait_begin(t, &waiting, &what, frame);
    int result = with_owner_died(m, call_real(m, call));
    if (holds(result))
        wait_end_holding(&waiting, 0);
    else if (result == ETIMEDOUT)
        wait_end_without(&waiting);
    else
        wait_end_refused(&waiting);
    return result;
}

/* Whether the hook reads the lock word of a mutex instead of trying the mutex. Robust mutexes:
 * glibc's trylock leaves an unrecoverable one locked where its lock does not (2.36). Mutexes with a
 * ceiling: a trylock that is refused lets the next lock pass. All mutexes, if another library sees
 * the lock and the unlock but not the trylock. */
static inline bool must_not_be_tried(const pthread_mutex_t *m)
{
    return (m->__data.__kind & (ROBUST | PROTECT)) || UNLIKELY(!mutex_may_be_tried);
}

static bool seems_free(const pthread_mutex_t *m)
{
    unsigned word = (unsigned)__atomic_load_n(&m->__data.__lock, __ATOMIC_RELAXED);
    return !(word & (m->__data.__kind & PROTECT ? ~CEILING_MASK : OWNER_MASK));
}

/* Every case: other kinds, other forms, a thread's first lock, a change of level. */
static NOINLINE int lock_any(pthread_mutex_t *m, const struct call *call, const uintptr_t *frame)
{
    struct lt_thread *t = watched();
    if (!t)
        return call_real(m, call);
    cookie_taken(t, mutex_key(m), (uint32_t)m->__data.__kind);
    int result = EINVAL;
    bool waits =
        must_not_be_tried(m) ? !seems_free(m) : (result = real_pthread_mutex_trylock(m)) == EBUSY;
    if (call->form == LOCK)
        order_before(t, mutex_key(m), (uint32_t)m->__data.__kind, false, frame);
    if (waits)
        return wait_for(t, m, call, frame);
    if (!holds(result))
        result = call_real(m, call);
    if (holds(with_owner_died(m, result)))
        taken(t, m, return_address(frame));
    return result;
}

static const struct call lock_call = {.form = LOCK};

NOINLINE int mutex_lock_any(pthread_mutex_t *m, const struct timespec *until,
                            const uintptr_t *frame)
{
    return lock_any(m, &(struct call){.form = until ? TIMED : LOCK, .until = until}, frame);
}

static NOINLINE int lock_not_free(pthread_mutex_t *m, const uintptr_t *frame)
{
    struct lt_thread *t = watched();
    bool may_be_own = (m->__data.__kind & MUTEX_TYPE) == PTHREAD_MUTEX_RECURSIVE_NP &&
                      (uint32_t)m->__data.__owner == lt_own.tid;
    if (!t || may_be_own)
        return lock_any(m, &lock_call, frame);
    order_before(t, mutex_key(m), (uint32_t)m->__data.__kind, false, frame);
    return wait_for(t, m, &lock_call, frame);
}

static NOINLINE int taken_in_new_order(pthread_mutex_t *m, const uintptr_t *frame)
{
    struct lt_thread *t = watched();
    uint32_t kind = (uint32_t)m->__data.__kind;
    if (UNLIKELY(!t))
        return 0;
    if (LIKELY(t->held_top)) /* false if a new epoch began */
        order_note(t, mutex_key(m), kind, false, frame);
    acquired(t, mutex_key(m), kind, return_address(frame), 0);
    return 0;
}

/* mutex_taken_nested() and taken_in_new_order() are functions of their own. Else a hook that finds
 * no new order would save registers. */
NOINLINE int mutex_taken_nested(pthread_mutex_t *m, const uintptr_t *frame)
{
    struct lt_thread *t = ready(current_mode());
    if (UNLIKELY(!t || !order_is_known(t, order_hash(t, mutex_key(m), false))))
        return taken_in_new_order(m, frame);
    acquired(t, mutex_key(m), (uint32_t)m->__data.__kind, return_address(frame), 0);
    return 0;
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *m)
{
    uint32_t mode = current_mode();
    if (at_rest(mode))
        return real_pthread_mutex_lock(m);
    switch (mutex_take_now(m, mode, __builtin_return_address(0), true)) {
    case MUTEX_TAKEN: return 0;
    case MUTEX_NOT_FREE: return lock_not_free(m, FRAME());
    case MUTEX_NESTED: return mutex_taken_nested(m, FRAME());
    default: return lock_any(m, &lock_call, FRAME());
    }
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *until)
{
    return lock_any(m, &(struct call){.form = TIMED, .until = until}, FRAME());
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock,
                                   const struct timespec *until)
{
    /* glibc checks the clock before it tries. */
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
        return real_pthread_mutex_clocklock(m, clock, until);
    return lock_any(m, &(struct call){.form = CLOCK, .clock = clock, .until = until}, FRAME());
}

NOINLINE int mutex_trylock_any(pthread_mutex_t *m, const void *site)
{
    struct lt_thread *t = watched();
    int result = real_pthread_mutex_trylock(m);
    if (!t)
        return result;
    cookie_taken(t, mutex_key(m), (uint32_t)m->__data.__kind);
    if (holds(with_owner_died(m, result)))
        taken(t, m, site);
    else if (result == EBUSY)
        waits_of(t, counters_of(t, mutex_key(m), (uint32_t)m->__data.__kind))->trylock_failed++;
    return result;
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *m)
{
    uint32_t mode = current_mode();
    if (at_rest(mode))
        return real_pthread_mutex_trylock(m);
    const void *site = __builtin_return_address(0);
    return mutex_take_now(m, mode, site, false) == MUTEX_TAKEN ? 0 : mutex_trylock_any(m, site);
}

static int unlock(void *m)
{
    return real_pthread_mutex_unlock(m);
}

/* A thread that took the mutex unseen owns it all the same. If other threads release one lock after
 * the other, the first of them are enough. */
static NOINLINE void check_release(struct lt_thread *t, const pthread_mutex_t *m,
                                   const uintptr_t *frame)
{
    enum { ENOUGH = 64, ELIDED = 256 /* such a mutex has no owner; glibc, nptl/pthreadP.h */ };
    uint64_t key = mutex_key(m);
    uint32_t owner = (uint32_t)m->__data.__owner;
    const struct lt_lock *lock = lock_find(key);
    if (owner == t->tid || m->__data.__kind & ELIDED)
        return;
    if (!owner && seems_free(m))
        misuse_note(t, LT_MISUSE_RELEASED_FREE, key, 0, frame);
    else if (owner && lock && lock->foreign_releases < ENOUGH && held_by_others(key, t))
        misuse_note(t, LT_MISUSE_RELEASED_OTHERS, key, owner, frame);
}

/* Every case: another lock was taken later, a timed hold, a recursive level, a change of level. */
NOINLINE int mutex_unlock_any(pthread_mutex_t *m, const uintptr_t *frame)
{
    struct lt_thread *t = watched();
    if (!t)
        return real_pthread_mutex_unlock(m);
    if (UNLIKELY(!held_find(t, mutex_key(m))))
        check_release(t, m, frame);
    return release_by(t, mutex_key(m), unlock, m);
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *m)
{
    uint32_t mode = current_mode();
    if (at_rest(mode))
        return real_pthread_mutex_unlock(m);
    if (LIKELY(mutex_released(ready(mode), m)))
        return real_pthread_mutex_unlock(m);
    return mutex_unlock_any(m, FRAME());
}

void mutex_begins(pthread_mutex_t *m, const uintptr_t *frame)
{
    struct lt_thread *t = watched();
    if (!t)
        return;
    lock_life_begins(mutex_key(m), 0, frame);
    held_forget(t, mutex_key(m)); /* as fork handlers do to the locks of their child */
}

void mutex_ends(pthread_mutex_t *m)
{
    if (watched())
        lock_life_ends(mutex_key(m));
}

void mutex_check_end(const pthread_mutex_t *m, const uintptr_t *frame)
{
    struct lt_thread *t = watched();
    const struct lt_lock *lock = t ? lock_find(mutex_key(m)) : NULL;
    if (!lock)
        return;
    if (!seems_free(m))
        misuse_note(t, LT_MISUSE_ENDED_HELD, mutex_key(m), (uint32_t)m->__data.__owner, frame);
    else if (blame_is_waited_for(lock))
        misuse_note(t, LT_MISUSE_ENDED_WAITED, mutex_key(m), 0, frame);
}

EXPORT int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attributes)
{
    int result = real_pthread_mutex_init(m, attributes);
    if (result == 0)
        mutex_begins(m, FRAME());
    return result;
}

EXPORT int pthread_mutex_destroy(pthread_mutex_t *m)
{
    mutex_check_end(m, FRAME());
    int result = real_pthread_mutex_destroy(m);
    if (result == 0)
        mutex_ends(m);
    return result;
}

ALSO(pthread_mutex_init);
ALSO(pthread_mutex_destroy);
ALSO(pthread_mutex_lock);
ALSO(pthread_mutex_trylock);
ALSO(pthread_mutex_unlock);
