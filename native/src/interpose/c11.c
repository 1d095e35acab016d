/* Mutexes and condition variables of C11 threads. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <threads.h>

#include "account/signal_counts.h"
#include "base/tls.h"
#include "interpose/c11_shim.h"
#include "interpose/cond_model.h"
#include "interpose/mutex_fast_path.h"
#include "interpose/real.h"
#include "stack/capture.h"

static inline pthread_mutex_t *mutex_of(mtx_t *m)
{
    return (pthread_mutex_t *)(void *)m;
}

static inline pthread_cond_t *cond_of(cnd_t *c)
{
    return (pthread_cond_t *)(void *)c;
}

EXPORT int mtx_init(mtx_t *m, int type)
{
    int result = real_mtx_init(m, type);
    if (result == thrd_success)
        mutex_begins(mutex_of(m), FRAME());
    return result;
}

EXPORT void mtx_destroy(mtx_t *m)
{
    mutex_check_end(mutex_of(m), FRAME());
    real_mtx_destroy(m);
    mutex_ends(mutex_of(m));
}

EXPORT int mtx_lock(mtx_t *m)
{
    uint32_t mode = current_mode();
    if (at_rest(mode))
        return real_mtx_lock(m);
    switch (mutex_take_now(mutex_of(m), mode, __builtin_return_address(0), true)) {
    case MUTEX_TAKEN: return thrd_success;
    case MUTEX_NESTED: return mutex_taken_nested(mutex_of(m), FRAME()); /* 0: thrd_success */
    default: return thrd_result(mutex_lock_any(mutex_of(m), NULL, FRAME()));
    }
}

EXPORT int mtx_timedlock(mtx_t *m, const struct timespec *until)
{
    return watched() ? thrd_result(mutex_lock_any(mutex_of(m), until, FRAME()))
                     : real_mtx_timedlock(m, until);
}

EXPORT int mtx_trylock(mtx_t *m)
{
    uint32_t mode = current_mode();
    if (at_rest(mode))
        return real_mtx_trylock(m);
    const void *site = __builtin_return_address(0);
    if (LIKELY(mutex_take_now(mutex_of(m), mode, site, false) == MUTEX_TAKEN))
        return thrd_success;
    return thrd_result(mutex_trylock_any(mutex_of(m), site));
}

EXPORT int mtx_unlock(mtx_t *m)
{
    uint32_t mode = current_mode();
    if (at_rest(mode))
        return real_mtx_unlock(m);
    if (LIKELY(mutex_released(ready(mode), mutex_of(m))))
        return real_mtx_unlock(m);
    return thrd_result(mutex_unlock_any(mutex_of(m), FRAME()));
}

EXPORT int cnd_init(cnd_t *c)
{
    int result = real_cnd_init(c);
    if (result == thrd_success)
        cond_begins(cond_of(c), FRAME());
    return result;
}

EXPORT void cnd_destroy(cnd_t *c)
{
    real_cnd_destroy(c);
    cond_ends(cond_of(c));
}

static inline bool wakes_one(cnd_t *c)
{
    return cond_wakes(cond_of(c), 1);
}

static inline bool wakes_all(cnd_t *c)
{
    return cond_wakes(cond_of(c), UINT32_MAX);
}

SIGNAL_HOOK(cnd_signal, real_cnd_signal, cnd_t, LT_KIND_COND, LT_RECORD_SIGNAL, wakes_one)
SIGNAL_HOOK(cnd_broadcast, real_cnd_broadcast, cnd_t, LT_KIND_COND, LT_RECORD_BROADCAST, wakes_all)

EXPORT int cnd_wait(cnd_t *c, mtx_t *m)
{
    return watched() ? thrd_result(cond_wait(cond_of(c), mutex_of(m), NULL, FRAME()))
                     : real_cnd_wait(c, m);
}

EXPORT int cnd_timedwait(cnd_t *c, mtx_t *m, const struct timespec *until)
{
    /* A missing time limit is no wait without one. */
    return until && watched() ? thrd_result(cond_wait(cond_of(c), mutex_of(m), until, FRAME()))
                              : real_cnd_timedwait(c, m, until);
}
