/* Reader-writer locks. A hook tries the lock first, as for mutexes. Each reader is a holder. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "account/blame.h"
#include "account/brief_wait.h"
#include "account/hold.h"
#include "account/misuse.h"
#include "account/wait.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "interpose/real.h"
#include "interpose/second_attempt.h"
#include "order/lock_cookie.h"
#include "order/lock_life.h"
#include "order/lock_order.h"
#include "stack/capture.h"
#include "tables/held_list.h"
#include "tables/lock_table.h"
#include "tables/thread_table.h"

enum form { LOCK, TIMED, CLOCK };

struct call {
    enum form form;
    bool shared;
    clockid_t clock;
    const struct timespec *until;
};

static inline uint64_t key_of(const pthread_rwlock_t *l)
{
    return lock_key(LT_KIND_RWLOCK, l);
}

/* Whether writers or readers go first: an enum in pthread.h. */
static inline uint32_t type_of(const pthread_rwlock_t *l)
{
    return l->__data.__flags;
}

static int call_real(pthread_rwlock_t *l, const struct call *call)
{
    switch (call->form) {
    case TIMED:
        return call->shared ? real_pthread_rwlock_timedrdlock(l, call->until)
                            : real_pthread_rwlock_timedwrlock(l, call->until);
    case CLOCK:
        return call->shared ? real_pthread_rwlock_clockrdlock(l, call->clock, call->until)
                            : real_pthread_rwlock_clockwrlock(l, call->clock, call->until);
    default: return call->shared ? real_pthread_rwlock_rdlock(l) : real_pthread_rwlock_wrlock(l);
    }
}

/* glibc, nptl/pthread_rwlock_common.c: bits of __readers. */
enum { WRITE_PHASE = 1, WRITE_LOCKED = 2, READERS_WAIT = 4, READER_SHIFT = 3 };

/* One release too many makes the number of readers negative: then nobody has the lock. */
static inline bool is_held(const pthread_rwlock_t *l)
{
    unsigned readers = l->__data.__readers;
    bool is_negative = (int)readers < 0;
    return readers & WRITE_LOCKED ||
           (!(readers & WRITE_PHASE) && !is_negative && readers >> READER_SHIFT);
}

/* Whether a thread waits for the lock; to be called by a holder. In a phase of writing, the readers
 * that glibc counts are waiting. */
static inline bool is_waited_for(const pthread_rwlock_t *l)
{
    unsigned readers = l->__data.__readers;
    return l->__data.__writers || readers & READERS_WAIT ||
           (readers & WRITE_PHASE && readers >> READER_SHIFT);
}

/* Counts a lock that was free for this thread. */
static inline void taken(struct lt_thread *t, const pthread_rwlock_t *l, bool shared,
                         const void *site)
{
    if (UNLIKELY(shared && l->__data.__writers))
        acquired_met(t, key_of(l), type_of(l), site);
    else
        acquired(t, key_of(l), type_of(l), site, shared ? LT_HELD_SHARED : 0);
}

/* libc's trylock only reads a lock that is not free. */
static bool read_if_free(void *lock)
{
    return real_pthread_rwlock_tryrdlock(lock) == 0;
}

static bool write_if_free(void *lock)
{
    return real_pthread_rwlock_trywrlock(lock) == 0;
}

/* Whether the thread got the lock in a second attempt. A thread that holds the lock itself makes
 * none. */
static bool got_it_soon(struct lt_thread *t, pthread_rwlock_t *l, const struct call *call,
                        struct wait_for *what, const uintptr_t *frame)
{
    if (call->form != LOCK || l->__data.__shared || (uint32_t)l->__data.__cur_writer == t->tid)
        return false;
    brief_wait_begins(t, what, frame);
    return call->shared ? second_attempt((uintptr_t)l >> 6, read_if_free, l, &what->since)
                        : second_attempt((uintptr_t)l >> 6, write_if_free, l, &what->since);
}

static NOINLINE int wait_for(struct lt_thread *t, pthread_rwlock_t *l, const struct call *call,
                             const uintptr_t *frame)
{
    struct waiting waiting;
    uint16_t held_flags = call->shared ? LT_HELD_SHARED : 0;
    struct wait_for what = {.key = key_of(l),
                            .type = type_of(l),
                            .holder = (uint32_t)l->__data.__cur_writer,
                            .flags = (call->form == LOCK ? 0u : LT_WAIT_TIMED) |
                                     (call->shared ? LT_WAIT_SHARED : 0u) |
                                     (l->__data.__shared ? LT_WAIT_PSHARED : 0u)};
    if (got_it_soon(t, l, call, &what, frame)) {
        brief_wait_ended(t, &what, what.since, held_flags, frame);
        return 0;
    }
    what.holder = (uint32_t)l->__data.__cur_writer; /* there may be another one by now */
    if (UNLIKELY(what.holder == t->tid))
        misuse_note(t, LT_MISUSE_TAKEN_AGAIN, key_of(l), t->tid, frame);
    wait_begin(t, &waiting, &what, frame);
    int result = call_real(l, call);
    if (result == 0)
        wait_end_holding(&waiting, held_flags);
    else if (result == ETIMEDOUT)
        wait_end_without(&waiting);
    else
        wait_end_refused(&waiting);
    return result;
}

static inline int lock_any(pthread_rwlock_t *l, const struct call *call, const uintptr_t *frame)
{
    struct lt_thread *t = watched();
    /* glibc checks the time and its clock before it tries. */
    bool refused =
        call->until && ((unsigned long)call->until->tv_nsec >= 1000000000ul ||
                        (call->clock != CLOCK_REALTIME && call->clock != CLOCK_MONOTONIC));
    if (!t || refused)
        return call_real(l, call);
    cookie_taken(t, key_of(l), type_of(l));
    int tried = call->shared ? real_pthread_rwlock_tryrdlock(l) : real_pthread_rwlock_trywrlock(l);
    if (call->form == LOCK)
        order_before(t, key_of(l), type_of(l), call->shared, frame);
    if (UNLIKELY(tried))
        return wait_for(t, l, call, frame);
    taken(t, l, call->shared, return_address(frame));
    return 0;
}

EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
    return lock_any(l, &(struct call){LOCK, true, 0, NULL}, FRAME());
}

EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
    return lock_any(l, &(struct call){LOCK, false, 0, NULL}, FRAME());
}

EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *l, const struct timespec *until)
{
    return lock_any(l, &(struct call){TIMED, true, CLOCK_REALTIME, until}, FRAME());
}

EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *l, const struct timespec *until)
{
    return lock_any(l, &(struct call){TIMED, false, CLOCK_REALTIME, until}, FRAME());
}

EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clock,
                                      const struct timespec *until)
{
    return lock_any(l, &(struct call){CLOCK, true, clock, until}, FRAME());
}

EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clock,
                                      const struct timespec *until)
{
    return lock_any(l, &(struct call){CLOCK, false, clock, until}, FRAME());
}

static inline int tried(pthread_rwlock_t *l, int result, bool shared, const void *site)
{
    struct lt_thread *t = watched();
    if (t)
        cookie_taken(t, key_of(l), type_of(l));
    if (t && result == 0)
        taken(t, l, shared, site);
    else if (t && result == EBUSY)
        waits_of(t, counters_of(t, key_of(l), type_of(l)))->trylock_failed++;
    return result;
}

EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *l)
{
    return tried(l, real_pthread_rwlock_tryrdlock(l), true, __builtin_return_address(0));
}

EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *l)
{
    return tried(l, real_pthread_rwlock_trywrlock(l), false, __builtin_return_address(0));
}

static int unlock(void *l)
{
    return real_pthread_rwlock_unlock(l);
}

/* If several readers hold the lock, nobody knows which threads they are. */
static NOINLINE void check_release(struct lt_thread *t, const pthread_rwlock_t *l,
                                   const uintptr_t *frame)
{
    uint32_t writer = (uint32_t)l->__data.__cur_writer;
    if (!lock_find(key_of(l)))
        return;
    if (!is_held(l))
        misuse_note(t, LT_MISUSE_RELEASED_FREE, key_of(l), 0, frame);
    else if (writer && writer != t->tid && held_by_others(key_of(l), t))
        misuse_note(t, LT_MISUSE_RELEASED_OTHERS, key_of(l), writer, frame);
}

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
    struct lt_thread *t = watched();
    if (!t || LIKELY(!is_waited_for(l) && released(t, key_of(l))))
        return real_pthread_rwlock_unlock(l);
    if (UNLIKELY(!held_find(t, key_of(l))))
        check_release(t, l, FRAME());
    return release_by(t, key_of(l), unlock, l);
}

EXPORT int pthread_rwlock_init(pthread_rwlock_t *l, const pthread_rwlockattr_t *attributes)
{
    int result = real_pthread_rwlock_init(l, attributes);
    struct lt_thread *t = watched();
    if (result == 0 && t) {
        lock_life_begins(key_of(l), 0, FRAME());
        held_forget(t, key_of(l));
    }
    return result;
}

EXPORT int pthread_rwlock_destroy(pthread_rwlock_t *l)
{
    struct lt_thread *t = watched();
    const struct lt_lock *lock = t ? lock_find(key_of(l)) : NULL;
    if (lock && is_held(l))
        misuse_note(t, LT_MISUSE_ENDED_HELD, key_of(l), (uint32_t)l->__data.__cur_writer, FRAME());
    else if (lock && blame_is_waited_for(lock))
        misuse_note(t, LT_MISUSE_ENDED_WAITED, key_of(l), 0, FRAME());
    int result = real_pthread_rwlock_destroy(l);
    if (result == 0 && watched())
        lock_life_ends(key_of(l));
    return result;
}

ALSO(pthread_rwlock_init);
ALSO(pthread_rwlock_destroy);
ALSO(pthread_rwlock_rdlock);
ALSO(pthread_rwlock_tryrdlock);
ALSO(pthread_rwlock_wrlock);
ALSO(pthread_rwlock_trywrlock);
ALSO(pthread_rwlock_unlock);
