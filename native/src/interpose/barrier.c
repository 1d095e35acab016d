/* Barriers. Each thread but the last of a round waits, and which one is the last nobody can say
 * before: so each arrival is a wait, and the one that completed the round takes it back. */
#include <pthread.h>
#include <stdint.h>

#include "account/wait.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "interpose/real.h"
#include "order/lock_life.h"
#include "stack/capture.h"

/* What glibc keeps there (sysdeps/nptl/internaltypes.h), which its ABI fixes: programs have barriers
 * in memory that they share with others. */
struct barrier {
    unsigned in, current_round, count;
    int shared;
};

static inline const struct barrier *inside(const pthread_barrier_t *b)
{
    return (const struct barrier *)(const void *)b;
}

static inline uint64_t key_of(const pthread_barrier_t *b)
{
    return lock_key(LT_KIND_BARRIER, b);
}

EXPORT int pthread_barrier_wait(pthread_barrier_t *b)
{
    struct lt_thread *t = watched();
    if (!t)
        return real_pthread_barrier_wait(b);
    struct waiting waiting;
    wait_begin(t, &waiting,
               &(struct wait_for){.key = key_of(b),
                                  .parties = inside(b)->count,
                                  .flags = inside(b)->shared ? LT_WAIT_PSHARED : 0},
               FRAME());
    int result = real_pthread_barrier_wait(b);
    if (result == PTHREAD_BARRIER_SERIAL_THREAD) /* glibc gives it to the one that came last */
        wait_end_at_once(&waiting);
    else if (result == 0)
        wait_end_done(&waiting);
    else
        wait_end_refused(&waiting);
    return result;
}

EXPORT int pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attributes,
                                unsigned count)
{
    int result = real_pthread_barrier_init(b, attributes, count);
    if (result == 0 && watched())
        lock_life_begins(key_of(b), 0, __builtin_return_address(0));
    return result;
}

/* The real one waits until all have left, so only then the life of the address ends. */
EXPORT int pthread_barrier_destroy(pthread_barrier_t *b)
{
    int result = real_pthread_barrier_destroy(b);
    if (result == 0 && watched())
        lock_life_ends(key_of(b));
    return result;
}
