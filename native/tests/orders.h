/* Helpers of the tests of lock orders: locks by number, taken as a hook takes them. */
#ifndef LOCKTOP_TESTS_ORDERS_H
#define LOCKTOP_TESTS_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "account/hold.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "order/lock_order.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "stack/capture.h"
#include "tables/lock_table.h"

static inline uint64_t key_number(uint64_t n)
{
    return lock_key(LT_KIND_MUTEX, (void *)(0x30000 + n * 40));
}

/* Takes a lock as a hook does. */
static NOINLINE __attribute__((unused)) void take(struct lt_thread *t, uint64_t key, bool shared)
{
    const uintptr_t *frame = FRAME();
    order_before(t, key, 0, shared, frame);
    acquired(t, key, 0, return_address(frame), shared ? LT_HELD_SHARED : 0);
}

static inline void give_all(struct lt_thread *t)
{
    t->held_top = 0;
}

static inline uint32_t id(uint64_t key)
{
    return lock_id(key, 0);
}

static inline uint32_t count(void)
{
    uint32_t entries = 0;
    for (uint32_t i = 0; i < lt_shm->orders.count; i++)
        entries += ((struct lt_order *)array_at(&lt_shm->orders, i))->hash != 0;
    return entries;
}

static inline void pair(struct lt_thread *t, uint64_t first, uint64_t second)
{
    take(t, key_number(first), false);
    take(t, key_number(second), false);
    give_all(t);
}

/* Functions of their own, so that their calls have stacks of their own. */
static NOINLINE __attribute__((unused)) void pair_one_way(struct lt_thread *t, uint64_t first,
                                                          uint64_t second)
{
    pair(t, first, second);
    __asm__ volatile("");
}

static NOINLINE __attribute__((unused)) void pair_another_way(struct lt_thread *t, uint64_t first,
                                                              uint64_t second)
{
    pair(t, first, second);
    __asm__ volatile("");
}

static inline bool some_are_left_out(void)
{
    return lt_shm->notes & LT_NOTE_ORDERS_LEFT_OUT;
}

#endif
