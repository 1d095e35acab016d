/* The state of the lock orders and lives of one thread, in lt_own.order. */
#ifndef LOCKTOP_ORDER_STATE_H
#define LOCKTOP_ORDER_STATE_H

#include <stdint.h>

#include "locktop/abi.h"

struct order_state {
    uint32_t *cache; /* lock orders that need no further check, see lock_order.c */
    uint64_t seed;   /* differs for each thread and each of its segments */
    uint32_t *more;  /* a second and larger table, for a thread with many orders */
    uint32_t more_bits;
    uint32_t forgotten; /* of this segment: orders that found no room in a table */
    uint32_t skipped;
    uint32_t segment;    /* see struct lt_life */
    uint32_t life;       /* index + 1 in lt_header.lives, 0 none */
    uint32_t creator;    /* birth, 0 unknown */
    uint32_t created_in; /* the creator's segment */
};

_Static_assert(sizeof(struct order_state) <= sizeof(((struct lt_own *)0)->order), "too small");

static inline struct order_state *order_state(struct lt_thread *t)
{
    return (struct order_state *)t->own.order;
}

#endif
