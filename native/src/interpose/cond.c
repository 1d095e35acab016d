/* The hooks of condition variables. On x86-64 glibc has two kinds of pthread_cond_t behind the same
 * names. Each version of a hook calls its own version of the real function. */
#include <pthread.h>
#include <stdbool.h>

#include "account/signal_counts.h"
#include "base/compiler.h"
#include "interpose/cond_model.h"
#include "interpose/real.h"
#include "stack/capture.h"

static inline bool wakes_one_new(const pthread_cond_t *c)
{
    return cond_wakes(c, 1);
}

static inline bool wakes_all_new(const pthread_cond_t *c)
{
    return cond_wakes(c, UINT32_MAX);
}

#ifdef LT_COND_OLD
/* An old pthread_cond_t holds a pointer. */
static inline bool wakes_one_old(const pthread_cond_t *c)
{
    (void)c;
    return true;
}
#define wakes_all_old wakes_one_old
#endif

/* All hooks for one version of the symbols. The names here are only for .symver to rename, so no
 * header declares them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define VERSION_OF(suffix)                                                                         \
    EXPORT int cond_init##suffix(pthread_cond_t *c, const pthread_condattr_t *a)                   \
    {                                                                                              \
        int result = real_pthread_cond_init##suffix(c, a);                                         \
        if (result == 0)                                                                           \
            cond_begins(c, FRAME());                                                               \
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
                LT_KIND_COND, LT_RECORD_SIGNAL, wakes_one##suffix)                                 \
    SIGNAL_HOOK(cond_broadcast##suffix, real_pthread_cond_broadcast##suffix, pthread_cond_t,       \
                LT_KIND_COND, LT_RECORD_BROADCAST, wakes_all##suffix)                              \
    EXPORT int cond_wait##suffix(pthread_cond_t *c, pthread_mutex_t *m)                            \
    {                                                                                              \
        return cond_wait_plain(real_pthread_cond_wait##suffix, c, m, FRAME());                     \
    }                                                                                              \
    EXPORT int cond_timedwait##suffix(pthread_cond_t *c, pthread_mutex_t *m,                       \
                                      const struct timespec *until)                                \
    {                                                                                              \
        return cond_wait_timed(real_pthread_cond_timedwait##suffix, c, m, until, FRAME());         \
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
    return cond_wait_clock(c, m, clock, until, FRAME());
}
