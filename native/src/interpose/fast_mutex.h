/* Takes a free mutex without a call into libc.
 *
 * An attempt through libc costs more than the lock itself. glibc's trylock saves five registers and
 * jumps through a table. Its stores delay the atomic instruction that follows. So the library makes
 * the attempt here for the two kinds that are nearly all mutexes. The attempt is glibc's own first
 * step (nptl/pthread_mutex_lock.c: LLL_MUTEX_LOCK). Everything else, the unlock too, is libc's. */
#ifndef LOCKTOP_FAST_MUTEX_H
#define LOCKTOP_FAST_MUTEX_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "interpose/real.h"

/* False if another library between this one and libc sees pthread_mutex_lock but not
 * pthread_mutex_trylock: its counts must stay consistent. */
extern bool mutex_may_be_tried;

/* Whether mutex_take() does to a mutex what this libc does, found by trying. False if another
 * library stands between this one and libc and must see each call. To be called before there is a
 * second thread. */
bool fast_mutex_works(char *const *environ);

/* The calling thread's tid without a system call, which a sandbox may forbid: libc writes the tid
 * into a mutex. */
uint32_t mutex_read_tid(void);

/* glibc, nptl/pthreadP.h: bits beside the type of a mutex that one step can take. MUTEX_NO_ELISION,
 * which a program sets by PTHREAD_MUTEX_NORMAL, does not matter here. A mutex that is elided has
 * another bit. */
enum { MUTEX_TYPE = 3, MUTEX_PSHARED = 128, MUTEX_NO_ELISION = 512 };

static inline int mutex_kind(const pthread_mutex_t *m)
{
    return *(const volatile int *)&m->__data.__kind; /* read once, before the lock is taken */
}

/* The mutex is not robust, not priority-inheriting and not priority-protected. */
static inline bool mutex_is_plain(int kind)
{
    return !(kind & ~(MUTEX_TYPE | MUTEX_PSHARED | MUTEX_NO_ELISION));
}

/* Takes a plain mutex of this kind if the mutex is free. Returns false for a recursive mutex that
 * the caller holds already. */
static inline bool mutex_take(pthread_mutex_t *m, int kind, uint32_t tid)
{
    int free = 0;
    if (UNLIKELY(*real_single_threaded && !(kind & MUTEX_PSHARED))) {
        /* libc does without the atomic instruction then, and so does this function */
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
