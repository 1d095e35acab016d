/* The second attempt: a thread that found a lock taken looks at the lock for a moment before it
 * waits. The bookkeeping of a wait takes some 400 ns. A lock that is held briefly is free again
 * long before. */
#ifndef LOCKTOP_SECOND_ATTEMPT_H
#define LOCKTOP_SECOND_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/compiler.h"

#pragma GCC visibility push(hidden)

/* How long the attempts of one kind take, in ticks. */
struct attempt_times {
    uint64_t first; /* the pause before the first look; each pause is twice the one before */
    uint64_t limit; /* no look begins later; 0: no attempt */
};

extern struct attempt_times attempt_near, attempt_far;

/* The attempts of a thread. */
struct attempts {
    uint64_t transfer; /* mean ticks of a look that had to fetch the lock from another CPU */
    struct {
        uint8_t lost; /* attempts in a row without the lock */
        uint8_t skip; /* waits that begin without an attempt */
    } entry[16];      /* by a hash of the lock; several locks may share one */
};

extern __thread struct attempts attempts;

#pragma GCC visibility pop

/* To be called once, at the start. With one CPU there is no second attempt: while a thread looks at
 * the lock, the holder cannot release it. */
void second_attempt_init(void);

/* The attempt ended without the lock. A lock that is always held for long needs few attempts. Then
 * only some of the waits begin with one. */
static inline void attempt_lost(uint8_t *lost, uint8_t *skip)
{
    enum { LOST_OFTEN = 4, LOST_MAX = LOST_OFTEN + 4 };
    if (*lost < LOST_MAX)
        ++*lost;
    if (*lost >= LOST_OFTEN)
        *skip = (uint8_t)((1u << (*lost - LOST_OFTEN + 1)) - 1);
}

/* A look took `ticks`. A very short one found the lock in the CPU's own cache. During a very long
 * one the thread lost the CPU: that alone must not make the lock seem far. */
static inline void attempt_note_transfer(uint64_t ticks)
{
    uint64_t most = attempt_near.limit;
    if (ticks > attempt_near.first)
        attempts.transfer = (3 * attempts.transfer + (ticks < most ? ticks : most)) / 4;
}

/* Whether lines come from a CPU far away, so that a look delays the holder for long. */
static inline bool attempt_is_far(void)
{
    enum { NEAR_MAX = 6 };
    return attempts.transfer > NEAR_MAX * attempt_near.first;
}

/* Whether `take` took the lock soon. `take` only reads the lock while the lock is not free. Each
 * look takes the lock's cache line from the holder, who needs the line to release the lock. So the
 * pauses grow, and are longer between CPUs that are far from each other. `since`: when the attempt
 * began; 0: there was none. */
static ALWAYS_INLINE bool second_attempt(uint64_t hash, bool (*take)(void *), void *lock,
                                         uint64_t *since)
{
    uint8_t *lost = &attempts.entry[hash % 16].lost, *skip = &attempts.entry[hash % 16].skip;
    struct attempt_times times = attempt_is_far() ? attempt_far : attempt_near;
    *since = 0;
    if (UNLIKELY(!times.limit))
        return false;
    if (*skip) {
        --*skip;
        return false;
    }
    uint64_t begin = *since = lt_now(), now = begin;
    for (uint64_t pause = times.first; now - begin < times.limit; pause *= 2) {
        uint64_t until = now + pause;
        do
            cpu_relax();
        while ((now = lt_now()) < until);
        if (take(lock)) {
            *lost = 0;
            attempts.transfer -= attempts.transfer / 128; /* this look was not timed */
            return true;
        }
        uint64_t before = now;
        now = lt_now_after_loads();
        attempt_note_transfer(now - before);
    }
    attempt_lost(lost, skip);
    return false;
}

#endif
