/* Barriers. Each thread of a round waits but the last, and which one is the last is not known
 * before. So each arrival is a wait, and the thread that completes the round takes its wait
 * back. */
#include <pthread.h>
#include <stdint.h>

#include "account/wait.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "interpose/real.h"
#include "order/lock_life.h"
#include "stack/capture.h"

/* The content that glibc keeps in a barrier (sysdeps/nptl/internaltypes.h). The ABI fixes that:
 * programs share barriers with others in memory. */
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
    if (result == PTHREAD_BARRIER_SERIAL_THREAD) /* glibc returns it to the last one */
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
        lock_life_begins(key_of(b), 0, FRAME());
    return result;
}

/* The real function waits until all threads have left: only then the life of the lock ends. */
EXPORT int pthread_barrier_destroy(pthread_barrier_t *b)
{
    int result = real_pthread_barrier_destroy(b);
    if (result == 0 && watched())
        lock_life_ends(key_of(b));
    return result;
}
