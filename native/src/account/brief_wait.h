/* Brief waits: a thread got the lock in its second attempt. Each brief wait is counted as every
 * wait is. Only a sample of the brief waits has a stack, because a stack takes longer than such a
 * wait. The stack is taken before the second attempt. The waits between two samples count for the
 * stack of the sample before. */
#ifndef LOCKTOP_BRIEF_WAIT_H
#define LOCKTOP_BRIEF_WAIT_H

#include "account/wait.h"

/* To be called before the second attempt. Takes the stack if this wait belongs to the sample. The
 * unwinder must not run while the thread has the lock, which may be an allocator's. */
NOINLINE void brief_wait_begins(struct lt_thread *t, struct wait_for *what, const uintptr_t *frame);

/* The thread has the lock since now, and looked for it since `since` (ticks). The wait was never
 * published: the thread did not sleep. */
NOINLINE void brief_wait_ended(struct lt_thread *t, const struct wait_for *what, uint64_t since,
                               uint16_t held_flags, const uintptr_t *frame);

#endif
