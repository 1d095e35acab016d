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

#include "real.h"
#include "thread.h"

/* False where another library stands between us and libc that sees pthread_mutex_lock but not
 * pthread_mutex_trylock: what it counts must not fall apart. */
extern bool mutex_may_be_tried;

/* Whether this libc's mutexes are what mutex_take() takes them for, by trying; and nobody else
 * stands between us and libc who must see each call. Before there is a second thread. */
bool free_mutex_works(char *const *environ);

/* Neither recursive nor checked, robust, inheriting, protected or shared with another process. One
 * that is elided has a bit of its own; the bit of one that must not be, which a program sets by
 * asking for PTHREAD_MUTEX_NORMAL, says nothing here. */
static inline bool mutex_is_plain(const pthread_mutex_t *m)
{
    enum { NO_ELISION = 512 }; /* glibc, nptl/pthreadP.h */
    int kind = m->__data.__kind & ~NO_ELISION;
    return LIKELY(kind == PTHREAD_MUTEX_TIMED_NP) || kind == PTHREAD_MUTEX_ADAPTIVE_NP;
}

/* Takes a plain mutex if it is free. */
static inline bool mutex_take(pthread_mutex_t *m, uint32_t tid)
{
    int free = 0;
    if (*real_single_threaded) { /* libc does without the atomic instruction then, so we do */
        if (m->__data.__lock != 0)
            return false;
        m->__data.__lock = 1;
    } else if (UNLIKELY(!__atomic_compare_exchange_n(&m->__data.__lock, &free, 1, false,
                                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))) {
        return false;
    }
    m->__data.__owner = (int)tid;
    m->__data.__nusers++;
    return true;
}

#endif
