/* Taking a free mutex without a call into libc.
 *
 * To try a lock through libc costs more than to take it: glibc's trylock saves five registers and
 * jumps through a table, and its stores stand in the way of the atomic instruction that follows. So
 * for the two kinds that are nearly all mutexes the attempt, which is glibc's own first step
 * (nptl/pthread_mutex_lock.c: LLL_MUTEX_LOCK), is made here. Everything else, the unlock too,
 * is libc's. */
#ifndef LOCKTOP_FREE_MUTEX_H
#define LOCKTOP_FREE_MUTEX_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "interpose/real.h"

/* False where another library stands between us and libc that sees pthread_mutex_lock but not
 * pthread_mutex_trylock: what it counts must not fall apart. */
extern bool mutex_may_be_tried;

/* Whether this libc's mutexes are what mutex_take() takes them for, by trying; and nobody else
 * stands between us and libc who must see each call. Before there is a second thread. */
bool fast_mutex_works(char *const *environ);

/* The calling thread's tid without a system call, which a sandbox may forbid: as libc writes the
 * tid into a mutex. */
uint32_t mutex_read_tid(void);

/* glibc, nptl/pthreadP.h: what a mutex may be beside its type, and yet be taken in one step. The bit
 * of one that must not be elided, which a program sets by asking for PTHREAD_MUTEX_NORMAL, says
 * nothing here; one that is elided has another. */
enum { MUTEX_TYPE = 3, MUTEX_PSHARED = 128, MUTEX_NO_ELISION = 512 };

static inline int mutex_kind(const pthread_mutex_t *m)
{
    return *(const volatile int *)&m->__data.__kind; /* read once, before the lock is taken */
}

/* Neither robust nor inheriting nor protected. */
static inline bool mutex_is_plain(int kind)
{
    return !(kind & ~(MUTEX_TYPE | MUTEX_PSHARED | MUTEX_NO_ELISION));
}

/* Takes a plain mutex of this kind if it is free: not if a recursive one is the caller's already. */
static inline bool mutex_take(pthread_mutex_t *m, int kind, uint32_t tid)
{
    int free = 0;
    if (UNLIKELY(*real_single_threaded && !(kind & MUTEX_PSHARED))) {
        /* libc does without the atomic instruction then, so we do */
        if (m->__data.__lock != 0)
            return false;
        m->__data.__lock = 1;
    } else if (UNLIKELY(!__atomic_compare_exchange_n(&m->__data.__lock, &free, 1, false,
                                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))) {
        return false;
    }
    if (UNLIKELY(kind & MUTEX_TYPE) && (kind & MUTEX_TYPE) == PTHREAD_MUTEX_RECURSIVE_NP)
        m->__data.__count = 1;
    m->__data.__owner = (int)tid;
    m->__data.__nusers++;
    return true;
}

#endif
