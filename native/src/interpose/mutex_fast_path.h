/* The fast path of mutexes: what happens in nearly every call. The hooks of pthread_mutex_* and of
 * C11's mtx_* share it. glibc's mtx_t is the pthread type. Its functions call the pthread ones
 * inside libc (nptl/mtx_lock.c and so on), where no hook sees the call. */
#ifndef LOCKTOP_MUTEX_FAST_PATH_H
#define LOCKTOP_MUTEX_FAST_PATH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "account/hold.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "interpose/fast_mutex.h"

static inline uint64_t mutex_key(const pthread_mutex_t *m)
{
    return lock_key(LT_KIND_MUTEX, m);
}

/* All return what the pthread function does. `until` NULL: without a time limit. `frame` is FRAME()
 * of the hook, `site` its return address. */
int mutex_lock_any(pthread_mutex_t *m, const struct timespec *until, const uintptr_t *frame);
int mutex_trylock_any(pthread_mutex_t *m, const void *site);
int mutex_unlock_any(pthread_mutex_t *m, const uintptr_t *frame);

/* Counts a mutex that the thread took while it holds others. Returns 0. */
int mutex_taken_nested(pthread_mutex_t *m, const uintptr_t *frame);

/* The program initialised or destroyed the mutex. */
void mutex_begins(pthread_mutex_t *m, const uintptr_t *frame);
void mutex_ends(pthread_mutex_t *m);

/* The program is about to destroy the mutex. */
void mutex_check_end(const pthread_mutex_t *m, const uintptr_t *frame);

enum mutex_taken {
    MUTEX_TAKEN,    /* and counted */
    MUTEX_NOT_FREE, /* a thread has it; of a recursive mutex, perhaps the caller */
    MUTEX_NESTED,   /* taken while the thread holds others, and not counted yet */
    MUTEX_UNUSUAL   /* another kind, a thread's first lock, a change of level: not tried */
};

/* Takes a mutex that is plain and free, at a level that is not dormant. Calls nothing. `waits`: the
 * caller would wait for the mutex, so the lock order is of interest. Whether the thread holds
 * others is tested afterwards, where the answer is loaded anyway. */
static ALWAYS_INLINE enum mutex_taken mutex_take_now(pthread_mutex_t *m, uint32_t mode,
                                                     const void *site, bool waits)
{
    struct lt_thread *t = ready(mode);
    uint32_t tid = lt_own.tid;
    int kind = mutex_kind(m);
    if (UNLIKELY(!t || !tid || !mutex_is_plain(kind)))
        return MUTEX_UNUSUAL;
    if (UNLIKELY(!mutex_take(m, kind, tid)))
        return MUTEX_NOT_FREE;
    if (waits && UNLIKELY(t->held_top))
        return MUTEX_NESTED;
    acquired(t, mutex_key(m), (uint32_t)m->__data.__kind, site, 0);
    return MUTEX_TAKEN;
}

/* Whether a thread waits for the mutex; to be called by its owner. In the lock word (glibc,
 * nptl/lowlevellock.h, futex(2)) the value 2 says so, beside a priority ceiling in the upper bits.
 * If the word is the owner's tid, its highest bit says so. A tid may look like the value 2: then
 * the slow path finds no waiter. */
static inline bool mutex_is_waited_for(const pthread_mutex_t *m)
{
    enum { CEILING_SHIFT = 19, WAITED_FOR = 2 };
    uint32_t word = (uint32_t)__atomic_load_n(&m->__data.__lock, __ATOMIC_RELAXED);
    if (LIKELY(!(word & (1u << 31 | WAITED_FOR)))) /* one instruction for nearly all mutexes */
        return false;
    return (int32_t)word < 0 || word << (32 - CEILING_SHIFT) == WAITED_FOR << (32 - CEILING_SHIFT);
}

/* A release that needs nothing more than the real call. */
static inline bool mutex_released(struct lt_thread *t, const pthread_mutex_t *m)
{
    return t && !mutex_is_waited_for(m) && released(t, mutex_key(m));
}

#endif
