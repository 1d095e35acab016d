/* The figures of the calling thread, for the tests of waits and holds. */
#ifndef LOCKTOP_TEST_ACCOUNTING_H
#define LOCKTOP_TEST_ACCOUNTING_H

#include <stdint.h>

#include "base/clock.h"
#include "base/tls.h"
#include "check.h"
#include "shm/segment.h"
#include "tables/lock_table.h"
#include "tables/stack_table.h"
#include "tables/thread_table.h"

enum { SITE = 0x777 };

static inline struct lt_counts *counts_of(struct lt_thread *t, uint64_t key)
{
    return &counters_of(t, key, 0)->counts;
}

static inline struct lt_waits *waits_counted(struct lt_thread *t, uint64_t key)
{
    return waits_of(t, counters_of(t, key, 0));
}

static inline void set_level(struct lt_thread *t, uint32_t level)
{
    lt_control.page.mode = (lt_control.page.mode & ~(uint32_t)LEVEL_MASK) | level;
    CHECK(watched() == t);
}

/* The ticks of other threads' waits that the thread is charged with for `lock`, taken at SITE.
 * `through`: the lock that the thread waited for meanwhile, 0 none. */
static inline uint64_t charged(struct lt_thread *t, uint64_t lock, uint64_t through)
{
    uint64_t chain[] = {SITE, through ? lock_id(through, 0) : 0};
    uint32_t stack = stack_id(chain, through ? 2 : 1), id = lock_id(lock, 0) | LT_SITE_BLAME;
    const struct lt_site *table = shm_ptr(t->sites);
    for (uint32_t i = 0; i < t->site_capacity; i++)
        if (table[i].count && table[i].lock == id && table[i].stack == stack)
            return table[i].wait_ticks;
    return 0;
}

/* The unit in which the waits of a lock are summed, ticks. */
static inline uint64_t wait_unit(void)
{
    return 1ull << lt_clock.wait_shift;
}

#endif
