/* The call sites in the shared memory. A part of abi.h: its rules hold here, too. */
#ifndef LOCKTOP_ABI_CALL_SITES_H
#define LOCKTOP_ABI_CALL_SITES_H

#include <stdint.h>

enum { LT_SITE_BLAME = 0x40000000 };

/* One thread's waits for one lock with one stack: open addressing, count 0 = empty. With
 * LT_SITE_BLAME in the lock's id: the waits of other threads while this one held the lock. The
 * stack then is the call site that took the lock. A second frame is the id of a lock that this
 * thread itself waited for meanwhile. Of a futex, it is the whole stack of the call that woke its
 * waiters: the type of the futex tells whether the thread held a lock. */
struct lt_site {
    uint32_t lock;
    uint32_t stack;
    uint64_t count;
    uint64_t wait_ticks;
    uint64_t wait_max;
};

/* Bits of lt_lock_counters.taken_at. */
enum lt_taken_at {
    LT_TAKEN_STACK_BIT =
        62,                /* the rest is the id of a stack: the thread had to wait for the unit */
    LT_TAKEN_MORE_BIT = 61 /* the thread took further units elsewhere before it posted this one */
};

enum { LT_UNLOADED_RANGES = 16 };

struct lt_code_range {
    uint64_t start;
    uint64_t end; /* written last; 0: not written yet */
};

/* Where code was that dlclose() unloaded. A return address there may be of that code, or of other
 * code that came later. */
struct lt_unloaded_code {
    uint32_t count; /* ranges; more than LT_UNLOADED_RANGES: the others are not known */
    uint32_t unused;
    struct lt_code_range ranges[16]; /* LT_UNLOADED_RANGES */
};

#endif
