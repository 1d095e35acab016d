/* The table of lock orders: which locks a thread wanted while it held which. */
#include "order/lock_order.h"

#include <stdbool.h>
#include <string.h>

#include "base/settings.h"
#include "order/happens_before.h"
#include "shm/arena.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "stack/capture.h"
#include "tables/thread_table.h"

enum {
    ORDERS_FIRST = 16,
    ORDERS_MAX = 1 << 14,
    BUCKET_BITS = 11,
    PATH_BITS = 12,
    PATH_MAX = 128,      /* noted orders of locks that are taken at the same call sites */
    RECHECK_PERIOD = 64, /* beyond PATH_MAX, one order in so many is checked all the same */
    SEEN_OF_ONE = 4,     /* segments of one thread that lt_order.seen keeps */
    /* the first entries of lt_order.seen stay; later threads overwrite the others */
    SEEN_FIRST = 5
};

#define FACTOR 0x9e3779b97f4a7c15u /* 2^64 / golden ratio */

uint16_t order_lives[1u << ORDER_LIFE_BITS];
static bool is_used;
static uint32_t bucket[1u << BUCKET_BITS]; /* index + 1 */
/* number of noted orders for a path of call sites */
static uint8_t path[1u << PATH_BITS];
/* for threads without memory of their own for this */
static uint32_t known_to_all[1u << ORDER_KNOWN_BITS];

void lock_order_init(void)
{
    array_init(&lt_shm->orders, sizeof(struct lt_order), ORDERS_FIRST);
    happens_before_init();
    if (!is_used)
        return;
    memset(bucket, 0, sizeof bucket); /* a forked child */
    memset(path, 0, sizeof path);
    memset(known_to_all, 0, sizeof known_to_all);
    is_used = false;
}

void order_life_changed(uint64_t key)
{
    __atomic_fetch_add(order_life_of(key), 1, __ATOMIC_RELEASE);
}

/* The lock that a thread wants. */
struct want {
    uint64_t key;
    uint32_t type;
    bool shared;
    const uintptr_t *frame;
};

static void remember(struct lt_thread *t, uint64_t hash)
{
    struct local *local = local_of(t);
    if (!local->order.known) {
        uint64_t offset = shm_alloc(sizeof known_to_all);
        local->order.known = offset ? shm_ptr(offset) : known_to_all;
    }
    *order_known_at(local->order.known, hash) = (uint32_t)(hash >> 16);
}

/* ---- the threads of an order ---- */

static void changed(void)
{
    __atomic_fetch_add(&lt_shm->orders_changed, 1, __ATOMIC_RELEASE);
}

static void store_segment(uint64_t *seen, uint64_t mine)
{
    __atomic_store_n(seen, mine, __ATOMIC_RELEASE);
    changed();
}

/* Adds a thread's segment. Every entry is true, so writing over one does no harm. */
static void add_segment(struct lt_order *order, uint32_t birth, uint32_t segment)
{
    uint64_t mine = (uint64_t)birth << 32 | segment, *own = NULL;
    uint32_t owned = 0;
    for (uint32_t i = 0; i < LT_ORDER_SEEN; i++) {
        uint64_t one = __atomic_load_n(&order->seen[i], __ATOMIC_ACQUIRE);
        if (one == 0 && __atomic_compare_exchange_n(&order->seen[i], &one, mine, false,
                                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            changed();
            return;
        }
        if (one == mine)
            return;
        if (one >> 32 != birth)
            continue;
        own = &order->seen[i]; /* the latest: the entries are in the order in which they came */
        if (++owned == SEEN_OF_ONE) {
            store_segment(own, mine);
            return;
        }
    }
    store_segment(own ? own : &order->seen[SEEN_FIRST + birth % (LT_ORDER_SEEN - SEEN_FIRST)],
                  mine);
}

/* ---- the table ---- */

enum { IDENTITY = offsetof(struct lt_order, epoch) };
enum { IDENTITY_WORDS = (offsetof(struct lt_order, site) - IDENTITY) / sizeof(uint32_t) };

static inline const uint32_t *identity(const struct lt_order *order)
{
    return (const uint32_t *)(const void *)((const char *)order + IDENTITY);
}

static uint64_t hash_of(const struct lt_order *order)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < IDENTITY_WORDS; i++)
        hash = (hash ^ identity(order)[i]) * FACTOR ^ hash >> 32;
    return hash | 1;
}

static struct lt_order *find(const struct lt_order *wanted, uint32_t head, uint32_t stop)
{
    for (uint32_t at = head; at && at != stop;) {
        struct lt_order *order = array_at(&lt_shm->orders, at - 1);
        if (order->hash == wanted->hash &&
            memcmp(identity(order), identity(wanted), IDENTITY_WORDS * sizeof(uint32_t)) == 0)
            return order;
        at = order->next;
    }
    return NULL;
}

/* Captures the stack last: without room for the order no stack is needed. */
static struct lt_order *make(struct lt_thread *t, const struct lt_order *from,
                             const uintptr_t *frame, uint32_t *index)
{
    if (__atomic_load_n(&lt_shm->orders.count, __ATOMIC_RELAXED) >= ORDERS_MAX)
        return NULL;
    struct lt_order *order = array_push(&lt_shm->orders, index);
    if (!order)
        return NULL;
    order->stack = stack_capture(t, frame);
    memcpy((char *)order + IDENTITY, (const char *)from + IDENTITY, sizeof *order - IDENTITY);
    __atomic_store_n(&order->hash, from->hash, __ATOMIC_RELEASE);
    return order;
}

static struct lt_order *enter(struct lt_thread *t, const struct lt_order *from,
                              const uintptr_t *frame, uint32_t *chain, uint32_t head)
{
    uint32_t index;
    struct lt_order *order = make(t, from, frame, &index);
    if (!order)
        return NULL;
    for (;;) {
        uint32_t stop = head;
        order->next = head;
        /* Release: a thread that finds the order finds it complete. */
        if (__atomic_compare_exchange_n(chain, &head, index + 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return order;
        struct lt_order *theirs = find(from, head, stop);
        if (theirs) {
            __atomic_store_n(&order->hash, 0, __ATOMIC_RELEASE); /* the entry stays unused */
            return theirs;
        }
    }
}

/* ---- a new order ---- */

static uint32_t life_now(const struct lt_lock *lock)
{
    uint32_t seen = 2 * __atomic_load_n(&lock->generation, __ATOMIC_RELAXED) +
                    __atomic_load_n(&lock->destroyed, __ATOMIC_RELAXED);
    return seen << 16 ^ __atomic_load_n(&lock->cookies, __ATOMIC_RELAXED);
}

static bool has_cookie(struct lt_lock *lock)
{
    return lt_settings.order == ORDER_COOKIES && __atomic_load_n(&lock->cookies, __ATOMIC_RELAXED);
}

/* An entry of a lock that other threads release may be stale. */
static void add_held(struct lt_order *order, const struct lt_held *held)
{
    struct lt_lock *lock = held->lock ? array_at(&lt_shm->locks, held->lock) : NULL;
    if (!lock || __atomic_load_n(&lock->foreign_releases, __ATOMIC_RELAXED))
        return;
    if (held->flags & LT_HELD_SHARED)
        order->flags |= 1u << order->held_count;
    if (has_cookie(lock))
        order->flags |= (uint32_t)LT_ORDER_KNOWN << order->held_count;
    order->held[order->held_count] = held->lock;
    order->held_life[order->held_count] = life_now(lock);
    order->site[order->held_count++] = held->site;
}

static void describe_held(struct lt_thread *t, struct lt_order *order)
{
    uint32_t top = t->held_top, first = order_first(top);
    order->epoch = epoch_of(t->mode);
    order->flags = first ? LT_ORDER_CUT : 0;
    for (uint32_t at = first; at < top; at += (uint32_t)sizeof(struct lt_held))
        add_held(order, held_at(t, at));
}

static bool describe_lock(struct lt_thread *t, const struct want *want, struct lt_order *order)
{
    order->lock = counters_of(t, want->key, want->type)->lock;
    struct lt_lock *lock = order->lock ? array_at(&lt_shm->locks, order->lock) : NULL;
    if (!lock)
        return false;
    order->flags |= has_cookie(lock) ? (uint32_t)LT_ORDER_KNOWN << LT_ORDER_HELD : 0;
    order->life = life_now(lock);
    order->flags |= want->shared ? LT_ORDER_SHARED : 0;
    order->hash = hash_of(order);
    return true;
}

static void enter_new(struct lt_thread *t, const struct want *want, uint8_t *count)
{
    struct lt_order new = {.held_count = 0};
    describe_held(t, &new);
    /* No thread waits for a lock that it holds itself. */
    if (!new.held_count || held_find(t, want->key) || !describe_lock(t, want, &new))
        return;
    uint32_t *chain = &bucket[new.hash >> (64 - BUCKET_BITS)];
    uint32_t head = __atomic_load_n(chain, __ATOMIC_ACQUIRE);
    struct lt_order *order = find(&new, head, 0);
    if (!order && *count < PATH_MAX) {
        is_used = true;
        order = enter(t, &new, want->frame, chain, head);
        ++*count; /* two threads at once may count as one */
    }
    if (order) {
        happens_before_keep(t);
        add_segment(order, (uint32_t)t->birth, local_of(t)->order.segment);
    }
}

/* The number of noted orders of locks that are taken at these call sites. */
static uint8_t *path_of(struct lt_thread *t, const uintptr_t *frame)
{
    uint32_t top = t->held_top;
    uint64_t hash = frame[1];
    for (uint32_t at = order_first(top); at < top; at += (uint32_t)sizeof(struct lt_held))
        hash = (hash ^ held_at(t, at)->site) * FACTOR;
    return &path[hash * FACTOR >> (64 - PATH_BITS)];
}

/* Of many locks a few are enough: locks that are taken at the same call sites belong to one class.
 * One order in RECHECK_PERIOD is checked, for it may show another thread in a noted order. */
static bool is_one_too_many(struct lt_thread *t, const uint8_t *count)
{
    return UNLIKELY(*count >= PATH_MAX) && ++local_of(t)->order.skipped % RECHECK_PERIOD;
}

void order_note(struct lt_thread *t, uint64_t key, uint32_t type, bool shared,
                const uintptr_t *frame)
{
    uint8_t *count = path_of(t, frame);
    if (is_one_too_many(t, count))
        return;
    uint32_t mode = thread_busy(t);
    if (!shm_is_of_parent()) {
        if (lt_settings.order && (mode & LEVEL_MASK) >= LT_LEVEL_CONTENDED)
            enter_new(t, &(struct want){key, type, shared, frame}, count);
        remember(t, order_hash(t, key, shared));
    }
    thread_ready(t, mode);
}

void order_check(struct lt_thread *t, uint64_t key, uint32_t type, bool shared,
                 const uintptr_t *frame)
{
    if (!order_is_known(t, order_hash(t, key, shared)))
        order_note(t, key, type, shared, frame);
}
