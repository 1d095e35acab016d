/* The long waits of a thread, apart from its ring, which a busy thread overwrites in seconds. */
#ifndef LOCKTOP_LONG_WAITS_H
#define LOCKTOP_LONG_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "account/lock_event.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "locktop/abi.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* The line of memory that lt_now() has read just before tells which waits are long. */
static inline bool long_wait_may_be(uint64_t ticks)
{
    return ticks >= __atomic_load_n(&lt_clock.long_wait, __ATOMIC_RELAXED);
}

/* Keeps the event that the thread's ring got last, if its wait was long. */
NOINLINE void long_wait_note(struct lt_thread *t, const struct lock_event *event);

#pragma GCC visibility pop

#endif
