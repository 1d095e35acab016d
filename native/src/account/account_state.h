/* The state of the accounting for one thread, in lt_own.account. */
#ifndef LOCKTOP_ACCOUNT_STATE_H
#define LOCKTOP_ACCOUNT_STATE_H

#include <stdint.h>

#include "account/lock_event.h"
#include "locktop/abi.h"

enum { DEFERRED_MAX = 4 };

struct account_state {
    const uintptr_t *wait_frame;  /* frame of the hook that published the wait */
    struct lt_lock *wait_counted; /* the lock that counts the wait, or NULL */
    uint8_t *ring;
    struct lt_long_wait *long_waits; /* NULL until the first */
    uint32_t jitter;                 /* state of the sampling's pseudo-random numbers */
    uint32_t deferred_count;
    struct lock_event deferred[DEFERRED_MAX];
};

_Static_assert(sizeof(struct account_state) <= sizeof(((struct lt_own *)0)->account), "too small");

static inline struct account_state *account_state(struct lt_thread *t)
{
    return (struct account_state *)t->own.account;
}

/* Any number but 0. */
static inline void random_begin(struct lt_thread *t, uint32_t seed)
{
    account_state(t)->jitter = seed | 1;
}

/* For sampling: xorshift32 (Marsaglia 2003). */
static inline uint32_t random_next(struct lt_thread *t)
{
    uint32_t x = account_state(t)->jitter;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return account_state(t)->jitter = x;
}

#endif
