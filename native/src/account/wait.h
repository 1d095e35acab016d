/* The contended path: a wait is published before the thread blocks, and accounted for
 * afterwards. */
#ifndef LOCKTOP_WAIT_H
#define LOCKTOP_WAIT_H

#include <stdbool.h>

#include "base/compiler.h"
#include "locktop/abi.h"

/* One wait, on the stack of the hook. */
struct waiting {
    struct lt_thread *thread;
    struct lt_wait outer; /* the wait that this one is part of or interrupted; key 0 = none */
    const uintptr_t *outer_frame;
    uint64_t key;
    uint64_t start;
    uint64_t attempted; /* ticks for which the thread had tried to get the lock by then */
    uint64_t end;       /* when a condition wait became a wait for its mutex; 0: it did not */
    uint32_t type;
    uint32_t stack;
    uint32_t holder;
    uint32_t held_top;             /* length of the held list when the wait began */
    struct lt_lock *counted;       /* the lock that counts the wait, NULL: none */
    struct lt_lock *outer_counted; /* the same for the outer wait */
    bool within; /* inside a wait for a lock of the program's own, which is the published one */
    const void *site;
};

/* The wait of a thread. `published_key` is the key to publish if it differs from the key to count
 * under, else 0. `mutex` is the id of the mutex that a condition wait gives up. `parties` is how
 * many threads a barrier lets go at once. Both are 0 for other kinds. */
struct wait_for {
    uint64_t key;
    uint64_t published_key;
    uint32_t type;
    uint32_t holder;
    uint32_t flags; /* enum lt_wait_flags */
    bool is_free;   /* no thread had the lock: the attempt is announced all the same */
    uint32_t stack; /* of brief_wait_begins(); 0: none was taken */
    uint64_t since; /* when the thread began to look for the lock (ticks); 0: it waits at once */
    union {
        uint32_t mutex;
        uint32_t parties;
    };
};

NOINLINE void wait_begin(struct lt_thread *t, struct waiting *waiting, const struct wait_for *what,
                         const uintptr_t *frame);

/* The wait ended: the thread now holds the lock. */
NOINLINE void wait_end_holding(struct waiting *waiting, uint16_t held_flags);

/* A condition wait ended at `waiting->end`. Then the thread waited for the mutex with this key and
 * type, and has it now. To be called before the end of the condition wait is accounted for. */
NOINLINE void wait_mutex_taken_back(const struct waiting *waiting, uint64_t key, uint32_t type);

/* The wait ended with what the thread waited for, and that is nothing to hold. */
NOINLINE void wait_end_done(struct waiting *waiting);

/* The wait ended with what the thread waited for, and it turned out to be no wait. */
NOINLINE void wait_end_at_once(struct waiting *waiting);

/* The wait ended without what the thread waited for: by timeout, signal or cancellation. */
NOINLINE void wait_end_without(struct waiting *waiting);

/* The call was refused (EDEADLK, EINVAL ...): it was no wait. */
NOINLINE void wait_end_refused(struct waiting *waiting);

/* The thread left its wait by longjmp, or ended in it: as if the wait had not begun. */
void wait_forget(struct lt_thread *t);

/* The thread goes on, but one of its waits is still published. If that wait began deeper in the
 * stack than `frame`, FRAME() of the hook, the thread left it by longjmp. */
void wait_left(struct lt_thread *t, const uintptr_t *frame);

/* For __attribute__((cleanup)): ends a wait from which a cancellation unwinds. A hook sets `thread`
 * to NULL when the wait has ended. */
void wait_abandoned(struct waiting *waiting);
#define CANCELLABLE __attribute__((cleanup(wait_abandoned)))

#endif
