/* Models a wait for a condition variable. The real wait releases the mutex and takes it again
 * inside libc, where no hook sees that. So both are modelled here: a sleeper does not hold the
 * mutex. */
#include "interpose/cond_model.h"

#include <errno.h>
#include <stdbool.h>

#include "account/hold.h"
#include "account/misuse.h"
#include "account/wait.h"
#include "account/wakeups.h"
#include "base/clock.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "interpose/real.h"
#include "order/lock_life.h"
#include "order/lock_order.h"
#include "stack/capture.h"
#include "tables/conditions.h"
#include "tables/thread_table.h"

enum { PROCESS_SHARED = 1 }; /* a bit of __wrefs (glibc, nptl/pthread_cond_wait.c) */

struct wait_call {
    struct waiting waiting;
    struct release release;         /* the release of the mutex at the beginning */
    struct lt_condition *condition; /* NULL: wake-ups are not followed */
    uint64_t round;                 /* of the sleep */
    uint64_t mutex;
    uint32_t type;
    const void *site;
};

static inline uint64_t key_of(const pthread_cond_t *c)
{
    return lock_key(LT_KIND_COND, c);
}

/* Whether the thread slept and has the mutex again. Else the call was refused, or the mutex is
 * lost. */
static bool is_ended(int result)
{
    return result == 0 || result == ETIMEDOUT || result == ECANCELED || result == EOWNERDEAD;
}

/* While threads wait with one mutex, no thread may wait with another. */
static void check_mutex(struct lt_thread *t, struct lt_condition *condition,
                        const pthread_cond_t *c, uint32_t mutex, const uintptr_t *frame)
{
    uint32_t other = __atomic_load_n(&condition->mutex, __ATOMIC_RELAXED);
    if (!mutex || other == mutex)
        return;
    if (other && cond_waiters(c))
        misuse_note(t, LT_MISUSE_TWO_MUTEXES, key_of(c), other, frame);
    else
        __atomic_store_n(&condition->mutex, mutex, __ATOMIC_RELAXED);
}

/* A signal of another process may end the sleep. No hook here sees such a signal. */
static bool is_shared(const pthread_cond_t *c)
{
    return c->__data.__wrefs & PROCESS_SHARED;
}

static struct lt_condition *condition_here(struct lt_thread *t, const pthread_cond_t *c)
{
    return is_shared(c) ? NULL : condition_of(t, counters_of(t, key_of(c), 0));
}

/* The mutex is another thread's, or free. A thread that took the mutex unseen owns it all the
 * same. */
static void check_held(struct lt_thread *t, const pthread_mutex_t *m, const uintptr_t *frame)
{
    enum { ELIDED = 256 /* such a mutex has no owner; glibc, nptl/pthreadP.h */ };
    uint32_t owner = (uint32_t)m->__data.__owner;
    if (owner != t->tid && !(m->__data.__kind & ELIDED))
        misuse_note(t, LT_MISUSE_WAITED_UNHELD, lock_key(LT_KIND_MUTEX, m), owner, frame);
}

static void sleep_begins(struct lt_thread *t, struct wait_call *call, const pthread_cond_t *c,
                         uint32_t mutex, const uintptr_t *frame)
{
    call->condition = condition_here(t, c);
    if (!call->condition)
        return;
    check_mutex(t, call->condition, c, mutex, frame);
    call->round = wakeup_begin(call->condition);
}

/* `is_new`: the condition is a pthread_cond_t of today. */
static void begin(struct lt_thread *t, struct wait_call *call, pthread_cond_t *c,
                  pthread_mutex_t *m, bool is_new, uint32_t flags, const uintptr_t *frame)
{
    call->mutex = lock_key(LT_KIND_MUTEX, m);
    call->type = (uint32_t)m->__data.__kind;
    call->site = return_address(frame);
    uint32_t mutex_id = counters_of(t, call->mutex, call->type)->lock;
    call->condition = NULL;
    if (is_new) {
        sleep_begins(t, call, c, mutex_id, frame);
        flags |= is_shared(c) ? LT_WAIT_PSHARED : 0u;
    }
    release_begin(t, call->mutex, &call->release);
    if (UNLIKELY(!call->release.listed && !call->release.shallower))
        check_held(t, m, frame);
    /* the thread will take the mutex again, while it holds the other locks */
    if (call->release.listed)
        order_before(t, call->mutex, call->type, false, frame);
    wait_begin(t, &call->waiting,
               &(struct wait_for){.key = key_of(c), .flags = flags, .mutex = mutex_id}, frame);
    release_charge(t, &call->release); /* the thread may sleep for long */
}

/* The mutex after the real wait. The thread has taken it again, or never gave it up if the wait was
 * refused. Or the thread lost it, if its owner died and nobody made it consistent. */
static void take_back(struct lt_thread *t, struct wait_call *call, const struct waiting *waiting,
                      int result)
{
    if (is_ended(result) && call->release.listed && waiting->end)
        wait_mutex_taken_back(waiting, call->mutex, call->type);
    else if (is_ended(result) && call->release.listed)
        acquired(t, call->mutex, call->type, call->site, 0);
    else if (result != ENOTRECOVERABLE) /* the real wait gives up one level of several */
        release_undo(t, &call->release);
}

/* When the thread was woken and then waited for the mutex; 0: it did not wait for the mutex. */
static uint64_t woken_and_waited(const struct wait_call *call, int result)
{
    if (!call->condition)
        return 0;
    bool heard = result == 0 || result == EOWNERDEAD;
    uint64_t woken = wakeup_end(call->condition, call->round, heard);
    if (!woken)
        return 0;
    uint64_t now = lt_now();
    bool waited = wakeup_waited(call->condition, woken, now, is_ended(result));
    return waited && woken > call->waiting.start && woken < now ? woken : 0;
}

/* Runs when the real wait returns, and when a cancellation unwinds from it. The event of the wait
 * is deferred until the release of the mutex. */
static void end(struct wait_call *call, int result)
{
    struct waiting waiting = call->waiting;
    struct lt_thread *t = waiting.thread;
    call->waiting.thread = NULL;
    if (!t || t != lt_own.block)
        return;
    waiting.end = woken_and_waited(call, result);
    if (watched() == t) {
        if (is_ended(result))
            release_account(t, &call->release);
        take_back(t, call, &waiting, result);
    }
    if (!is_ended(result)) {
        wait_end_refused(&waiting);
        if (result != ENOTRECOVERABLE)
            return;
    } else if (result == 0 || result == EOWNERDEAD) {
        wait_end_done(&waiting);
    } else {
        wait_end_without(&waiting);
    }
    release_end(t, &call->release);
}

static void cancelled(struct wait_call *call)
{
    end(call, ECANCELED);
}

/* The three forms differ in one call only. */
#define WAIT(name, parameters, real_call, is_new, wait_flags)                                      \
    int name parameters                                                                            \
    {                                                                                              \
        struct lt_thread *t = watched();                                                           \
        if (!t)                                                                                    \
            return real_call;                                                                      \
        __attribute__((cleanup(cancelled))) struct wait_call call;                                 \
        begin(t, &call, c, m, is_new, wait_flags, frame);                                          \
        int result = real_call;                                                                    \
        end(&call, result);                                                                        \
        return result;                                                                             \
    }

WAIT(cond_wait_plain,
     (cond_wait_function * real, pthread_cond_t *c, pthread_mutex_t *m, const uintptr_t *frame),
     real(c, m), real == real_pthread_cond_wait_new, 0)
WAIT(cond_wait_timed,
     (cond_timedwait_function * real, pthread_cond_t *c, pthread_mutex_t *m,
      const struct timespec *until, const uintptr_t *frame),
     real(c, m, until), real == real_pthread_cond_timedwait_new, LT_WAIT_TIMED)
WAIT(cond_wait_clock,
     (pthread_cond_t * c, pthread_mutex_t *m, clockid_t clock, const struct timespec *until,
      const uintptr_t *frame),
     real_pthread_cond_clockwait(c, m, clock, until), true, LT_WAIT_TIMED)

int cond_wait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until,
              const uintptr_t *frame)
{
    return until ? cond_wait_timed(real_pthread_cond_timedwait_new, c, m, until, frame)
                 : cond_wait_plain(real_pthread_cond_wait_new, c, m, frame);
}

void cond_wakes_some(const pthread_cond_t *c, uint32_t most)
{
    struct lt_thread *t = watched();
    struct lt_condition *condition = t ? condition_find(key_of(c)) : NULL;
    if (condition)
        wakeup_signal(condition, most);
}

void cond_begins(pthread_cond_t *c, const uintptr_t *frame)
{
    if (watched())
        lock_life_begins(key_of(c), 0, frame);
}

void cond_ends(pthread_cond_t *c)
{
    if (watched())
        lock_life_ends(key_of(c));
}
