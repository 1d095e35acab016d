/* What the hooks of pthread_* do, for those of C11 threads: glibc's mtx_t and cnd_t are the
 * pthread types, and its functions call the pthread ones inside (nptl/mtx_lock.c and so on), where
 * no hook sees it. */
#ifndef LOCKTOP_POSIX_HOOKS_H
#define LOCKTOP_POSIX_HOOKS_H

#include <errno.h>
#include <pthread.h>
#include <threads.h>
#include <time.h>

#include "runtime/thread.h"

/* Returns what the pthread function does. `until` NULL: as long as it takes. `frame` is FRAME() of
 * the hook. */
int cond_wait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until,
              const uintptr_t *frame);

/* How many wait for it, in all processes; glibc, nptl/pthread_cond_wait.c: __wrefs, flags in its lowest
 * bits. Some of them may be woken already. */
static inline unsigned cond_waiters(const pthread_cond_t *c)
{
    return __atomic_load_n(&c->__data.__wrefs, __ATOMIC_RELAXED) >> 3;
}

/* Its address begins or ends a life. */
void cond_begins(pthread_cond_t *c, const void *site);
void cond_ends(pthread_cond_t *c);

/* As glibc translates them (nptl/thrd_priv.h). */
static inline int thrd_result(int error)
{
    switch (error) {
    case 0: return thrd_success;
    case ENOMEM: return thrd_nomem;
    case ETIMEDOUT: return thrd_timedout;
    case EBUSY: return thrd_busy;
    default: return thrd_error;
    }
}

#endif
