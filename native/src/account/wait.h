/* The contended path: a wait is published before the thread blocks, and accounted for after. */
#ifndef LOCKTOP_WAIT_H
#define LOCKTOP_WAIT_H

#include <stdbool.h>

#include "base/compiler.h"
#include "locktop/abi.h"

/* One wait, on the stack of the hook. */
struct waiting {
    struct lt_thread *thread;
    struct lt_wait outer; /* what it is part of, or interrupted by a signal handler; key 0 = none */
    const uintptr_t *outer_frame;
    uint64_t key;
    uint64_t start;
    uint32_t type;
    uint32_t stack;
    uint32_t holder;
    uint32_t held_top;             /* of the held list when it began */
    struct lt_lock *counted;       /* the lock that it is counted in as waiting, NULL: none */
    struct lt_lock *outer_counted; /* the same of the outer wait */
    bool within; /* a wait for a lock of the program's own, which is what is shown */
    const void *site;
};

/* `shown` is the key to publish where it differs from the key to count under, else 0. `mutex` is
 * the lock id that a condition wait gives up, `parties` how many a barrier lets go at once, else 0. */
struct wait_for {
    uint64_t key;
    uint64_t shown;
    uint32_t type;
    uint32_t holder;
    uint32_t flags; /* enum lt_wait_flags */
    union {
        uint32_t mutex;
        uint32_t parties;
    };
};

NOINLINE void wait_begin(struct lt_thread *t, struct waiting *waiting, const struct wait_for *what,
                         const uintptr_t *frame);

/* The wait ended with the lock, which the thread now holds. */
NOINLINE void wait_end_holding(struct waiting *waiting, uint16_t held_flags);

/* The wait ended with what it waited for, which is nothing to hold. */
NOINLINE void wait_end_done(struct waiting *waiting);

/* It ended with what it waited for, and it turned out that there was nothing to wait for. */
NOINLINE void wait_end_at_once(struct waiting *waiting);

/* The wait ended without: its time ran out, a signal or a cancellation came. */
NOINLINE void wait_end_without(struct waiting *waiting);

/* The call was refused (EDEADLK, EINVAL ...): it was no wait. */
NOINLINE void wait_end_refused(struct waiting *waiting);

/* The thread's wait was left (by longjmp, or with the thread) and will not end: as if it had not begun. */
void wait_forget(struct lt_thread *t);

/* The thread goes on without having waited, but one of its waits is shown still: if it was made deeper in
 * the stack than `frame`, FRAME() of the hook, it was left by longjmp. */
void wait_left(struct lt_thread *t, const uintptr_t *frame);

/* For __attribute__((cleanup)): a wait from which a cancellation unwinds has not ended yet. A hook
 * sets `thread` to NULL when it has. */
void wait_abandoned(struct waiting *waiting);
#define CANCELLABLE __attribute__((cleanup(wait_abandoned)))

#endif
