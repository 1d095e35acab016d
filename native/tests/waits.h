/* Waits of the calling thread that begin and end as a test says. */
#ifndef LOCKTOP_TEST_WAITS_H
#define LOCKTOP_TEST_WAITS_H

#include <stdint.h>

#include "account/blame.h"
#include "account/wait.h"
#include "base/lock_key.h"
#include "check.h"
#include "tables/held_list.h"
#include "tables/lock_table.h"

/* Frame records as a hook has them. The later ones lie higher in the stack. */
enum { DEEP = 0, MIDDLE = 4, HIGH = 8 };
static uintptr_t frames[16] = {[DEEP + 1] = 0x111, [MIDDLE + 1] = 0x222, [HIGH + 1] = 0x333};

static inline uint64_t key_of(enum lt_kind kind, uint64_t number)
{
    return lock_key(kind, (void *)(0x50000 + number * 64));
}

static inline uint64_t waiters_of(uint64_t key)
{
    return lock_find(key)->waits & WAITS_MASK;
}

static inline struct waiting wait_at(struct lt_thread *t, uint64_t key, int frame)
{
    struct waiting w;
    wait_begin(t, &w, &(struct wait_for){.key = key}, &frames[frame]);
    return w;
}

static inline struct waiting wait_of(struct lt_thread *t, uint64_t key)
{
    return wait_at(t, key, MIDDLE);
}

/* A wait that lasts exactly `ticks`. */
static inline struct waiting wait_lasting(struct lt_thread *t, uint64_t key, uint64_t ticks)
{
    struct waiting w = wait_of(t, key);
    w.end = w.start + ticks;
    return w;
}

static inline void drop(struct lt_thread *t, uint64_t key)
{
    held_forget(t, key);
    CHECK_EQUAL(t->held_top, 0);
}

#endif
