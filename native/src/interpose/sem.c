/* POSIX semaphores. Nobody owns a semaphore, so the held list does not name it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "account/hold.h"
#include "account/signal_counts.h"
#include "account/wait.h"
#include "account/wake.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "interpose/real.h"
#include "order/lock_life.h"
#include "stack/capture.h"
#include "tables/inherited_semaphores.h"
#include "tables/lock_names.h"
#include "tables/lock_table.h"
#include "tables/thread_table.h"

enum form { WAIT, TIMED, CLOCK };

struct call {
    enum form form;
    clockid_t clock;
    const struct timespec *until;
};

static inline uint64_t key_of(const sem_t *s)
{
    return lock_key(LT_KIND_SEM, s);
}

/* The content that glibc keeps in a semaphore (sysdeps/nptl/internaltypes.h, struct new_sem): 0 if
 * only this process posts it. */
static inline bool is_shared(const sem_t *s)
{
    return ((const int *)(const void *)s)[2] != 0;
}

/* The same: how many threads sleep for the semaphore, or are about to. */
static inline bool is_waited_for(const sem_t *s)
{
    return __atomic_load_n(&((const unsigned *)(const void *)s)[1], __ATOMIC_RELAXED) != 0;
}

/* A post while threads wait. If the thread had taken a unit, it held what they waited for. */
static NOINLINE int post_to_waiters(sem_t *s, const uintptr_t *frame)
{
    struct lt_thread *t = waker();
    struct wake wake;
    /* of a shared one, a thread of another process may have held it */
    bool is_due = t && wake_begin_post(t, key_of(s), &wake) && !is_shared(s);
    int result = real_sem_post(s);
    if (is_due && result == 0) {
        int error = errno;
        wake_end(t, &wake, frame);
        errno = error;
    }
    return result;
}

static ALWAYS_INLINE int post(sem_t *s)
{
    return UNLIKELY(is_waited_for(s)) ? post_to_waiters(s, FRAME()) : real_sem_post(s);
}

/* glibc checks the clock and the time before it tries, and reads the time even if it need not. */
static inline bool is_refused(const struct call *call)
{
    return call->form != WAIT &&
           ((call->clock != CLOCK_REALTIME && call->clock != CLOCK_MONOTONIC) || !call->until ||
            (unsigned long)call->until->tv_nsec >= 1000000000ul);
}

static int call_real(sem_t *s, const struct call *call)
{
    switch (call->form) {
    case TIMED: return real_sem_timedwait(s, call->until);
    case CLOCK: return real_sem_clockwait(s, call->clock, call->until);
    default: return real_sem_wait(s);
    }
}

static NOINLINE int wait_for(struct lt_thread *t, sem_t *s, const struct call *call,
                             const uintptr_t *frame)
{
    struct waiting waiting CANCELLABLE;
    wait_begin(t, &waiting,
               &(struct wait_for){.key = key_of(s),
                                  .flags = (call->form == WAIT ? 0u : LT_WAIT_TIMED) |
                                           (is_shared(s) ? LT_WAIT_PSHARED : 0u)},
               frame);
    sem_life_check(t, key_of(s));
    if (call->form == WAIT)
        inherited_semaphore_check(t, key_of(s));
    int result = call_real(s, call);
    if (result == 0)
        wait_end_done(&waiting);
    else if (errno == ETIMEDOUT || errno == EINTR)
        wait_end_without(&waiting);
    else
        wait_end_refused(&waiting);
    waiting.thread = NULL;
    return result;
}

static inline int wait_any(sem_t *s, const struct call *call, const uintptr_t *frame)
{
    struct lt_thread *t = watched();
    if (!t || is_refused(call))
        return call_real(s, call);
    pthread_testcancel(); /* the real function does that even if it need not block */
    int saved = errno;
    if (UNLIKELY(real_sem_trywait(s) != 0)) {
        errno = saved;
        return wait_for(t, s, call, frame);
    }
    sem_passed(t, key_of(s), return_address(frame));
    return 0;
}

EXPORT int sem_wait(sem_t *s)
{
    return wait_any(s, &(struct call){WAIT, 0, NULL}, FRAME());
}

EXPORT int sem_timedwait(sem_t *s, const struct timespec *until)
{
    return wait_any(s, &(struct call){TIMED, CLOCK_REALTIME, until}, FRAME());
}

EXPORT int sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *until)
{
    return wait_any(s, &(struct call){CLOCK, clock, until}, FRAME());
}

EXPORT int sem_trywait(sem_t *s)
{
    struct lt_thread *t = watched();
    int result = real_sem_trywait(s);
    if (!t)
        return result;
    if (result == 0)
        sem_passed(t, key_of(s), __builtin_return_address(0));
    else if (errno == EAGAIN)
        waits_of(t, sem_counters_of(t, key_of(s)))->trylock_failed++;
    return result;
}

/* A semaphore keeps a post until a thread comes. */
static inline bool is_heard(const sem_t *s)
{
    (void)s;
    return true;
}

SIGNAL_HOOK(sem_post, post, sem_t, LT_KIND_SEM, LT_RECORD_SIGNAL, is_heard)

static void is_called(sem_t *s, const char *name)
{
    struct lt_thread *t = watched();
    if (!t)
        return;
    uint32_t mode = thread_busy(t);
    lock_name_set(key_of(s), name);
    thread_ready(t, mode);
}

EXPORT sem_t *sem_open(const char *name, int flags, ...)
{
    mode_t mode = 0;
    unsigned value = 0;
    if (flags & O_CREAT) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        value = va_arg(rest, unsigned);
        va_end(rest);
    }
    sem_t *s = real_sem_open(name, flags, mode, value);
    if (s != SEM_FAILED)
        is_called(s, name);
    return s;
}

EXPORT int sem_init(sem_t *s, int shared, unsigned value)
{
    int result = real_sem_init(s, shared, value);
    if (result == 0 && watched())
        lock_life_begins(key_of(s), value + 1, FRAME());
    return result;
}

EXPORT int sem_destroy(sem_t *s)
{
    int result = real_sem_destroy(s);
    if (result == 0 && watched())
        lock_life_ends(key_of(s));
    return result;
}
