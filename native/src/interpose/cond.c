/* Condition variables. The real wait gives the mutex up and takes it again inside libc, where no
 * hook sees it, so both are modelled here: a sleeper holds nothing. On x86-64 glibc has two kinds
 * of pthread_cond_t behind the same names; each version is forwarded to its own. */
#include <errno.h>
#include <pthread.h>

#include "account/misuse.h"
#include "account/signal_counts.h"
#include "account/wait.h"
#include "interpose/c11_shim.h"
#include "interpose/real.h"
#include "order/lock_order.h"

enum { PROCESS_SHARED = 1 }; /* of __wrefs (glibc, nptl/pthread_cond_wait.c) */

struct wait_call {
    struct waiting waiting;
    struct release release; /* of the mutex, at the beginning */
    uint64_t mutex;
    uint32_t type;
    const void *site;
};

static inline uint64_t key_of(const pthread_cond_t *c)
{
    return lock_key(LT_KIND_COND, c);
}

/* Whether the thread slept and has the mutex again; else the call was refused or the mutex lost. */
static bool is_ended(int result)
{
    return result == 0 || result == ETIMEDOUT || result == ECANCELED || result == EOWNERDEAD;
}

/* While threads wait with one mutex, nobody may with another. Which one it is stands in a word of the
 * condition's entry that only locks need. */
static void check_mutex(struct lt_thread *t, const pthread_cond_t *c, uint32_t mutex,
                        const uintptr_t *frame)
{
    struct lt_waits *waits = waits_of(t, slot_of(t, key_of(c), 0));
    struct lt_lock *lock = (struct lt_lock *)(uintptr_t)waits->own;
    if (!mutex || !lock || lock->key != key_of(c) || c->__data.__wrefs & PROCESS_SHARED)
        return;
    uint64_t other = __atomic_load_n(&lock->waits, __ATOMIC_RELAXED);
    if (other == mutex)
        return;
    if (other && cond_waiters(c))
        misuse_note(t, LT_MISUSE_TWO_MUTEXES, key_of(c), (uint32_t)other, frame);
    else
        __atomic_store_n(&lock->waits, mutex, __ATOMIC_RELAXED);
}

/* `is_new`: a pthread_cond_t of today. */
static void begin(struct lt_thread *t, struct wait_call *call, pthread_cond_t *c,
                  pthread_mutex_t *m, bool is_new, uint32_t flags, const uintptr_t *frame)
{
    call->mutex = lock_key(LT_KIND_MUTEX, m);
    call->type = (uint32_t)m->__data.__kind;
    call->site = return_address(frame);
    uint32_t mutex_id = slot_of(t, call->mutex, call->type)->lock;
    if (is_new)
        check_mutex(t, c, mutex_id, frame);
    release_begin(t, call->mutex, &call->release);
    if (call->release.listed) /* it will be taken again, with what is held besides */
        order_before(t, call->mutex, call->type, false, frame);
    wait_begin(t, &call->waiting,
               &(struct wait_for){.key = key_of(c), .flags = flags, .mutex = mutex_id}, frame);
    release_charge(t, &call->release); /* it may sleep for long */
}

/* The mutex as the real wait left it: taken again, or, if the wait was refused, never given up, or,
 * if its owner died and nobody made it consistent, lost. */
static void take_back(struct lt_thread *t, struct wait_call *call, int result)
{
    if (is_ended(result) && call->release.listed)
        acquired(t, call->mutex, call->type, call->site, 0);
    else if (result != ENOTRECOVERABLE) /* of several levels the real wait gives up one */
        release_undo(t, &call->release);
}

/* Runs when the real wait returns, and when a cancellation unwinds from it. Records wait for the
 * release of the mutex. */
static void end(struct wait_call *call, int result)
{
    struct waiting waiting = call->waiting;
    struct lt_thread *t = waiting.thread;
    call->waiting.thread = NULL;
    if (!t || t != lt_own.block)
        return;
    if (watched() == t) {
        if (is_ended(result))
            release_account(t, &call->release);
        take_back(t, call, result);
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
    static inline int name parameters                                                              \
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

typedef int (*wait_function)(pthread_cond_t *, pthread_mutex_t *);
typedef int (*timedwait_function)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

WAIT(wait_plain,
     (wait_function real, pthread_cond_t *c, pthread_mutex_t *m, const uintptr_t *frame),
     real(c, m), real == real_pthread_cond_wait_new, 0)
WAIT(wait_timed,
     (timedwait_function real, pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until,
      const uintptr_t *frame),
     real(c, m, until), real == real_pthread_cond_timedwait_new, LT_WAIT_TIMED)
WAIT(wait_clock,
     (pthread_cond_t * c, pthread_mutex_t *m, clockid_t clock, const struct timespec *until,
      const uintptr_t *frame),
     real_pthread_cond_clockwait(c, m, clock, until), true, LT_WAIT_TIMED)

int cond_wait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until,
              const uintptr_t *frame)
{
    return until ? wait_timed(real_pthread_cond_timedwait_new, c, m, until, frame)
                 : wait_plain(real_pthread_cond_wait_new, c, m, frame);
}

static inline bool is_waited_for_new(const pthread_cond_t *c)
{
    return cond_waiters(c) != 0;
}

#ifdef LT_COND_OLD
/* What lies there is a pointer. */
static inline bool is_waited_for_old(const pthread_cond_t *c)
{
    (void)c;
    return true;
}
#endif

void cond_begins(pthread_cond_t *c, const void *site)
{
    if (watched())
        locks_begin(key_of(c), site);
}

void cond_ends(pthread_cond_t *c)
{
    if (watched())
        locks_end(key_of(c));
}

/* All eight for one version of the symbols. Their names here are only for .symver to rename, so nobody
 * declares them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define VERSION_OF(suffix)                                                                         \
    EXPORT int cond_init##suffix(pthread_cond_t *c, const pthread_condattr_t *a)                   \
    {                                                                                              \
        int result = real_pthread_cond_init##suffix(c, a);                                         \
        if (result == 0)                                                                           \
            cond_begins(c, __builtin_return_address(0));                                           \
        return result;                                                                             \
    }                                                                                              \
    EXPORT int cond_destroy##suffix(pthread_cond_t *c)                                             \
    {                                                                                              \
        int result = real_pthread_cond_destroy##suffix(c);                                         \
        if (result == 0)                                                                           \
            cond_ends(c);                                                                          \
        return result;                                                                             \
    }                                                                                              \
    SIGNAL_HOOK(cond_signal##suffix, real_pthread_cond_signal##suffix, pthread_cond_t,             \
                LT_KIND_COND, is_waited_for##suffix)                                               \
    SIGNAL_HOOK(cond_broadcast##suffix, real_pthread_cond_broadcast##suffix, pthread_cond_t,       \
                LT_KIND_COND, is_waited_for##suffix)                                               \
    EXPORT int cond_wait##suffix(pthread_cond_t *c, pthread_mutex_t *m)                            \
    {                                                                                              \
        return wait_plain(real_pthread_cond_wait##suffix, c, m, FRAME());                          \
    }                                                                                              \
    EXPORT int cond_timedwait##suffix(pthread_cond_t *c, pthread_mutex_t *m,                       \
                                      const struct timespec *until)                                \
    {                                                                                              \
        return wait_timed(real_pthread_cond_timedwait##suffix, c, m, until, FRAME());              \
    }

#define SYMBOL(name, suffix, version)                                                              \
    __asm__(".symver cond_" #name #suffix ", pthread_cond_" #name version ", remove");
#define SYMBOLS(suffix, version)                                                                   \
    SYMBOL(init, suffix, version)                                                                  \
    SYMBOL(destroy, suffix, version)                                                               \
    SYMBOL(signal, suffix, version)                                                                \
    SYMBOL(broadcast, suffix, version)                                                             \
    SYMBOL(wait, suffix, version)                                                                  \
    SYMBOL(timedwait, suffix, version)

VERSION_OF(_new)
SYMBOLS(_new, "@@" LT_COND_NEW)
#ifdef LT_COND_OLD
VERSION_OF(_old)
SYMBOLS(_old, "@" LT_COND_OLD)
#endif

EXPORT int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
                                  const struct timespec *until)
{
    return wait_clock(c, m, clock, until, FRAME());
}
