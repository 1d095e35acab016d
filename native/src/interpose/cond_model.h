/* The common part of the hooks of pthread_cond_* and of C11's cnd_*. glibc's cnd_t is the pthread
 * type. Its functions call the pthread ones inside libc, where no hook sees the call. */
#ifndef LOCKTOP_COND_MODEL_H
#define LOCKTOP_COND_MODEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/compiler.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

typedef int cond_wait_function(pthread_cond_t *, pthread_mutex_t *);
typedef int cond_timedwait_function(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

/* The three forms of a wait. All return what the pthread function does. `real` is one version of
 * that function; `frame` is FRAME() of the hook. */
int cond_wait_plain(cond_wait_function *real, pthread_cond_t *c, pthread_mutex_t *m,
                    const uintptr_t *frame);
int cond_wait_timed(cond_timedwait_function *real, pthread_cond_t *c, pthread_mutex_t *m,
                    const struct timespec *until, const uintptr_t *frame);
int cond_wait_clock(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
                    const struct timespec *until, const uintptr_t *frame);

/* A wait for a pthread_cond_t of today. `until` NULL: without a time limit. */
int cond_wait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until,
              const uintptr_t *frame);

/* How many threads wait, in all processes; glibc, nptl/pthread_cond_wait.c: __wrefs, flags in its
 * lowest bits. Some of them may be woken already. */
static inline unsigned cond_waiters(const pthread_cond_t *c)
{
    return __atomic_load_n(&c->__data.__wrefs, __ATOMIC_RELAXED) >> 3;
}

NOINLINE void cond_wakes_some(const pthread_cond_t *c, uint32_t most);

/* A signal is about to wake at most so many threads: they are waiters of the mutex from now on.
 * False if no thread waits. */
static inline bool cond_wakes(const pthread_cond_t *c, uint32_t most)
{
    unsigned waiters = cond_waiters(c);
    if (waiters)
        cond_wakes_some(c, most < waiters ? most : waiters);
    return waiters != 0;
}

/* The program initialised or destroyed the condition variable. */
void cond_begins(pthread_cond_t *c, const uintptr_t *frame);
void cond_ends(pthread_cond_t *c);

#pragma GCC visibility pop

#endif
