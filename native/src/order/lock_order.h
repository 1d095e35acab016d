/* Lock orders: what a thread wants while it holds other locks. */
#ifndef LOCKTOP_LOCK_ORDER_H
#define LOCKTOP_LOCK_ORDER_H

#include <stdbool.h>

#include "base/tls.h"
#include "locktop/abi.h"
#include "order/order_state.h"
#include "tables/held_list.h"

/* Makes the tables. */
void lock_order_init(void);

/* A lock was initialised or destroyed: known orders of its address need a new check. */
void order_life_changed(uint64_t key);

/* How often locks began or ended a life, by address; several addresses share one number. */
enum { ORDER_LIFE_BITS = 10 };
#pragma GCC visibility push(hidden)
extern uint16_t order_lives[1u << ORDER_LIFE_BITS];
#pragma GCC visibility pop

static inline uint16_t *order_life_of(uint64_t key)
{
    return &order_lives[key >> 3 & ((1u << ORDER_LIFE_BITS) - 1)];
}

/* The hash of one lock. The hashes of a set are added up, so that none waits for the one before.
 * The factors are odd and as irregular as can be. They are 2^64 over the golden ratio, and over the
 * root of x^3 = x + 1. */
static inline uint64_t order_hash_of(uint64_t key, uint64_t shared, uint64_t factor)
{
    uint64_t lives = __atomic_load_n(order_life_of(key), __ATOMIC_RELAXED);
    return (key + (shared << 48) + (lives << 49)) * factor;
}

/* Where the locks that count begin in the held list: of a long list only the locks taken last
 * count. */
static inline uint32_t order_first(uint32_t top)
{
    enum { WINDOW = LT_ORDER_HELD * sizeof(struct lt_held) };
    return LIKELY(top <= WINDOW) ? 0 : top - WINDOW;
}

/* The hash of the wanted lock and all held locks, for one segment of one thread, at one level. */
static inline uint64_t order_hash(struct lt_thread *t, uint64_t key, bool shared)
{
    uint32_t top = t->held_top;
    const struct lt_held *held = held_at(t, order_first(top)), *end = held_at(t, top);
    uint64_t hash = order_state(t)->seed + order_hash_of(key, shared, 0xc13fa9a902a6328fu);
    for (; held < end; held++)
        hash += order_hash_of(held->key, held->flags & LT_HELD_SHARED, 0x9e3779b97f4a7c15u);
    return hash;
}

enum { ORDER_KNOWN_BITS = 8 };

static inline uint32_t *order_known_at(uint32_t *cache, uint64_t hash)
{
    return &cache[hash >> (64 - ORDER_KNOWN_BITS)];
}

/* The part of a hash that tells it apart from others of one place. With order_known_at() it has all
 * bits that the lives of the locks change. */
static inline uint32_t order_tag(uint64_t hash)
{
    return (uint32_t)(hash >> 24);
}

/* Whether the thread knows this order already. */
static inline bool order_is_known(struct lt_thread *t, uint64_t hash)
{
    uint32_t *cache = order_state(t)->cache;
    return LIKELY(cache && *order_known_at(cache, hash) == order_tag(hash));
}

/* Notes a new order, of a thread that holds other locks. */
NOINLINE void order_note(struct lt_thread *t, uint64_t key, uint32_t type, bool shared,
                         const uintptr_t *frame);

/* The same as order_before(), for a thread that holds other locks. */
NOINLINE void order_check(struct lt_thread *t, uint64_t key, uint32_t type, bool shared,
                          const uintptr_t *frame);

/* The thread wants a lock without a time limit, or has just got the lock and not listed it yet.
 * `frame` is FRAME() of the hook. */
static inline void order_before(struct lt_thread *t, uint64_t key, uint32_t type, bool shared,
                                const uintptr_t *frame)
{
    if (UNLIKELY(t->held_top))
        order_check(t, key, type, shared, frame);
}

#endif
