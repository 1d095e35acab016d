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
    ORDERS_MAX = 1 << 16,
    MEMORY_SHARE = 8, /* entries may take this part of the file's limit */
    BUCKET_BITS = 14,
    STACK_BITS = 12,
    SITES_BITS = 10,
    REFUSED_MAX = 128,     /* refused orders of the same call sites, before checks become rare */
    RECHECK_PERIOD = 64,   /* then one order in so many is checked all the same */
    SHORT_LIFE = 16,       /* an address that had so many locks has one for a short time only */
    SHORT_LIVED_MAX = 128, /* noted orders of such locks, by their stack */
    WAYS_MAX = 16,         /* entries of the same locks; all further stacks share one more */
    SEEN_OF_ONE = 4,       /* segments of one thread that lt_order.seen keeps */
    /* the first entries of lt_order.seen stay; later threads overwrite the others */
    SEEN_FIRST = 5
};

#define FACTOR 0x9e3779b97f4a7c15u /* 2^64 / golden ratio */

uint16_t order_lives[1u << ORDER_LIFE_BITS];
static bool is_used;
static uint32_t most;                      /* entries */
static uint32_t bucket[1u << BUCKET_BITS]; /* index + 1 */
static uint32_t noted[1u << STACK_BITS];   /* number of entries with a stack */
static uint8_t refused[1u << SITES_BITS];  /* number of refused orders of the same call sites */
/* for threads without memory of their own for this */
static uint32_t known_to_all[1u << ORDER_KNOWN_BITS];

void lock_order_init(void)
{
    uint64_t room = lt_shm->limit / MEMORY_SHARE / sizeof(struct lt_order);
    most = room < ORDERS_MAX ? (uint32_t)room : ORDERS_MAX;
    array_init(&lt_shm->orders, sizeof(struct lt_order), ORDERS_FIRST);
    happens_before_init();
    if (!is_used)
        return;
    memset(bucket, 0, sizeof bucket); /* a forked child */
    memset(noted, 0, sizeof noted);
    memset(refused, 0, sizeof refused);
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

/* ---- the orders that a thread knows ---- */

/* A thread with more orders than order_known_at() has room for keeps them in a second table, which
 * grows. Without it each such request would cost a search and a stack. */
enum { KNOWN_SET = 4, MORE_FIRST_BITS = 10, MORE_LAST_BITS = 16, MORE_STEP_BITS = 2 };

/* The hashes of locks that lie in a row form a pattern, which would fill a few sets alone. */
static uint64_t mixed(uint64_t hash)
{
    return (hash ^ hash >> 32) * FACTOR;
}

/* The set of a mixed hash. */
static uint32_t *more_known_at(const struct order_state *state, uint64_t mix)
{
    return &state->more[mix >> (64 - state->more_bits) & ~(KNOWN_SET - 1ull)];
}

static void remember_now(struct lt_thread *t, uint64_t hash)
{
    struct order_state *state = order_state(t);
    if (!state->cache) {
        uint64_t offset = shm_alloc(sizeof known_to_all);
        state->cache = offset ? shm_ptr(offset) : known_to_all;
    }
    *order_known_at(state->cache, hash) = order_tag(hash);
}

static bool is_remembered(struct lt_thread *t, uint64_t hash)
{
    const struct order_state *state = order_state(t);
    if (!state->more)
        return false;
    uint64_t mix = mixed(hash);
    const uint32_t *set = more_known_at(state, mix);
    uint32_t tag = (uint32_t)(mix >> 16), matches = 0;
    for (int i = 0; i < KNOWN_SET; i++)
        matches |= set[i] == tag;
    return matches;
}

/* The larger table begins empty: the thread checks its orders once more. */
static void grow_more(struct order_state *state)
{
    uint32_t bits = state->more ? state->more_bits + MORE_STEP_BITS : MORE_FIRST_BITS;
    uint64_t offset = bits <= MORE_LAST_BITS ? shm_alloc(sizeof(uint32_t) << bits) : 0;
    if (offset) {
        state->more_bits = bits;
        state->more = shm_ptr(offset);
    }
    state->forgotten = 0;
}

static void remember(struct lt_thread *t, uint64_t hash)
{
    struct order_state *state = order_state(t);
    remember_now(t, hash);
    uint32_t room = state->more ? 1u << state->more_bits >> 2 : 1u << ORDER_KNOWN_BITS;
    if (state->forgotten >= room)
        grow_more(state);
    if (!state->more) {
        state->forgotten++;
        return;
    }
    uint64_t mix = mixed(hash);
    uint32_t *set = more_known_at(state, mix);
    state->forgotten += set[KNOWN_SET - 1] != 0;
    memmove(set + 1, set, (KNOWN_SET - 1) * sizeof *set);
    set[0] = (uint32_t)(mix >> 16);
}

/* ---- the threads of an order ---- */

static void note_change(void)
{
    __atomic_fetch_add(&lt_shm->orders_changed, 1, __ATOMIC_RELEASE);
}

static void store_segment(uint64_t *seen, uint64_t mine)
{
    __atomic_store_n(seen, mine, __ATOMIC_RELEASE);
    note_change();
}

/* Adds a thread's segment. Every entry is true, so writing over one does no harm. */
static void add_segment(struct lt_order *order, uint32_t birth, uint32_t segment)
{
    uint64_t mine = (uint64_t)birth << 32 | segment, *own = NULL;
    uint32_t owned = 0;
    for (uint32_t i = 0; i < LT_ORDER_SEEN; i++) {
        uint64_t entry = __atomic_load_n(&order->seen[i], __ATOMIC_ACQUIRE);
        if (entry == 0 && __atomic_compare_exchange_n(&order->seen[i], &entry, mine, false,
                                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            note_change();
            return;
        }
        if (entry == mine)
            return;
        if (entry >> 32 != birth)
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

static bool has_same_locks(const struct lt_order *order, const struct lt_order *wanted)
{
    return order->hash == wanted->hash &&
           memcmp(identity(order), identity(wanted), IDENTITY_WORDS * sizeof(uint32_t)) == 0;
}

static bool is_same_way(const struct lt_order *order, const struct lt_order *wanted)
{
    return order->stack == wanted->stack &&
           memcmp(order->site, wanted->site, sizeof wanted->site) == 0;
}

/* The entries of the locks of an order. */
struct ways {
    struct lt_order *same; /* the entry of the same way */
    uint32_t count;        /* entries of the same locks */
};

static struct ways find(const struct lt_order *wanted, uint32_t head, uint32_t stop)
{
    struct ways ways = {.count = 0};
    for (uint32_t next = head; next && next != stop && !ways.same;) {
        struct lt_order *order = array_at(&lt_shm->orders, next - 1);
        if (has_same_locks(order, wanted)) {
            ways.count++;
            ways.same = is_same_way(order, wanted) ? order : NULL;
        }
        next = order->next;
    }
    return ways;
}

static bool has_segment(const struct lt_order *order, uint64_t mine)
{
    for (uint32_t i = 0; i < LT_ORDER_SEEN; i++)
        if (__atomic_load_n(&order->seen[i], __ATOMIC_RELAXED) == mine)
            return true;
    return false;
}

/* Whether an entry of these locks names this segment: then no stack is needed. */
static bool is_noted(const struct lt_order *wanted, uint32_t head, uint64_t mine)
{
    for (uint32_t next = head; next;) {
        const struct lt_order *order = array_at(&lt_shm->orders, next - 1);
        if (has_same_locks(order, wanted) && has_segment(order, mine))
            return true;
        next = order->next;
    }
    return false;
}

static struct lt_order *make(const struct lt_order *from, uint32_t *index)
{
    struct lt_order *order = array_push(&lt_shm->orders, index);
    if (!order)
        return NULL;
    order->stack = from->stack;
    memcpy((char *)order + IDENTITY, (const char *)from + IDENTITY, sizeof *order - IDENTITY);
    __atomic_store_n(&order->hash, from->hash, __ATOMIC_RELEASE);
    return order;
}

static struct lt_order *enter(const struct lt_order *from, uint32_t *chain, uint32_t head)
{
    uint32_t index;
    struct lt_order *order = make(from, &index);
    if (!order)
        return NULL;
    for (;;) {
        uint32_t stop = head;
        order->next = head;
        /* Release: a thread that finds the order finds it complete. */
        if (__atomic_compare_exchange_n(chain, &head, index + 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return order;
        struct lt_order *theirs = find(from, head, stop).same;
        if (theirs) {
            __atomic_store_n(&order->hash, 0, __ATOMIC_RELEASE); /* the entry stays unused */
            return theirs;
        }
    }
}

/* ---- a new order ---- */

/* An order that is not in the table yet. */
struct order_draft {
    struct lt_order order;
    bool is_short_lived; /* an address of it has had many locks */
    bool is_incomplete;  /* a lock has no entry in the table of locks */
};

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

static struct lt_lock *lock_of(struct order_draft *draft, uint32_t id)
{
    struct lt_lock *lock = id ? array_at(&lt_shm->locks, id) : NULL;
    if (!lock) {
        draft->is_incomplete = true;
        return NULL;
    }
    if (__atomic_load_n(&lock->generation, __ATOMIC_RELAXED) >= SHORT_LIFE ||
        __atomic_load_n(&lock->cookies, __ATOMIC_RELAXED) >= SHORT_LIFE)
        draft->is_short_lived = true;
    return lock;
}

/* An entry of a lock that other threads release may be stale. */
static void add_held(struct order_draft *draft, const struct lt_held *held)
{
    struct lt_order *order = &draft->order;
    struct lt_lock *lock = lock_of(draft, held->lock);
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

static void describe_held(struct lt_thread *t, struct order_draft *draft)
{
    uint32_t top = t->held_top, first = order_first(top);
    draft->order.epoch = epoch_of(t->mode);
    draft->order.flags = first ? LT_ORDER_CUT : 0;
    for (uint32_t offset = first; offset < top; offset += (uint32_t)sizeof(struct lt_held))
        add_held(draft, held_at(t, offset));
}

static bool describe_lock(struct lt_thread *t, const struct want *want, struct order_draft *draft)
{
    struct lt_order *order = &draft->order;
    order->lock = counters_of(t, want->key, want->type)->lock;
    struct lt_lock *lock = lock_of(draft, order->lock);
    if (!lock)
        return false;
    order->flags |= has_cookie(lock) ? (uint32_t)LT_ORDER_KNOWN << LT_ORDER_HELD : 0;
    order->life = life_now(lock);
    order->flags |= want->shared ? LT_ORDER_SHARED : 0;
    order->hash = hash_of(order);
    return true;
}

/* ---- which orders are kept ---- */

/* Tells the reader that some orders are not in the table. */
static void leave_out(uint8_t *refusals)
{
    if (!(__atomic_load_n(&lt_shm->notes, __ATOMIC_RELAXED) & LT_NOTE_ORDERS_LEFT_OUT)) {
        __atomic_fetch_or(&lt_shm->notes, LT_NOTE_ORDERS_LEFT_OUT, __ATOMIC_RELAXED);
        note_change();
    }
    if (*refusals < REFUSED_MAX)
        ++*refusals; /* two threads at once may count as one */
}

/* A stack may have as many entries as are left for all others. So one stack takes half of the
 * table, and two take a third each. A stack that comes late still finds room. Locks that live for a
 * short time would fill the table with orders that cannot come again. */
static bool has_room(const struct order_draft *draft, uint32_t count)
{
    uint32_t used = __atomic_load_n(&lt_shm->orders.count, __ATOMIC_RELAXED);
    uint32_t left = used < most ? most - used : 0;
    return count < (draft->is_short_lived && left > SHORT_LIVED_MAX ? SHORT_LIVED_MAX : left);
}

static uint32_t *noted_with(uint32_t stack)
{
    return &noted[stack * FACTOR >> (64 - STACK_BITS)];
}

/* The entry of this order and way; NULL if there is no room. */
static struct lt_order *entry_of(struct order_draft *draft, uint32_t *chain, uint32_t head)
{
    struct ways ways = find(&draft->order, head, 0);
    if (!ways.same && ways.count >= WAYS_MAX) {
        draft->order.stack = 0; /* unknown */
        memset(draft->order.site, 0, sizeof draft->order.site);
        ways = find(&draft->order, head, 0);
    }
    uint32_t *count = noted_with(draft->order.stack);
    if (ways.same || !has_room(draft, *count))
        return ways.same;
    is_used = true;
    ++*count; /* two threads at once may count as one */
    return enter(&draft->order, chain, head);
}

static void enter_new(struct lt_thread *t, const struct want *want, uint8_t *refusals)
{
    struct order_draft draft = {.is_incomplete = false};
    struct lt_order *new = &draft.order;
    describe_held(t, &draft);
    /* No thread waits for a lock that it holds itself. */
    bool is_order = new->held_count && !held_find(t, want->key) && describe_lock(t, want, &draft);
    if (draft.is_incomplete)
        leave_out(refusals);
    if (!is_order)
        return;
    uint32_t birth = (uint32_t)t->birth, segment = order_state(t)->segment;
    uint32_t *chain = &bucket[new->hash >> (64 - BUCKET_BITS)];
    uint32_t head = __atomic_load_n(chain, __ATOMIC_ACQUIRE);
    if (is_noted(new, head, (uint64_t)birth << 32 | segment))
        return;
    new->stack = stack_capture(t, want->frame);
    struct lt_order *order = entry_of(&draft, chain, head);
    if (!order) {
        leave_out(refusals);
        return;
    }
    *refusals = 0;
    happens_before_keep(t);
    add_segment(order, birth, segment);
}

/* The number of refused orders of locks that are taken at these call sites. The address of the
 * frame tells the callers of a wrapper apart, most often. */
static uint8_t *refused_at(struct lt_thread *t, const uintptr_t *frame)
{
    uint32_t top = t->held_top;
    uint64_t hash = (frame[1] ^ (uintptr_t)frame << 16) * FACTOR;
    for (uint32_t offset = order_first(top); offset < top;
         offset += (uint32_t)sizeof(struct lt_held))
        hash = (hash ^ held_at(t, offset)->site) * FACTOR;
    return &refused[hash >> (64 - SITES_BITS)];
}

/* The next order of call sites that had many refused ones will be refused too. One order in
 * RECHECK_PERIOD is checked, for it may show another thread in a noted order. */
static bool is_one_too_many(struct lt_thread *t, const uint8_t *refusals)
{
    return UNLIKELY(*refusals >= REFUSED_MAX) && ++order_state(t)->skipped % RECHECK_PERIOD;
}

static void note(struct lt_thread *t, const struct want *want, uint32_t mode)
{
    uint64_t hash = order_hash(t, want->key, want->shared);
    if (is_remembered(t, hash)) {
        remember_now(t, hash);
        return;
    }
    uint8_t *refusals = refused_at(t, want->frame);
    if (is_one_too_many(t, refusals))
        return;
    if (lt_settings.order && (mode & LEVEL_MASK) >= LT_LEVEL_CONTENDED)
        enter_new(t, want, refusals);
    remember(t, hash);
}

/* Busy throughout: a signal handler that takes locks must not change the tables meanwhile. */
void order_note(struct lt_thread *t, uint64_t key, uint32_t type, bool shared,
                const uintptr_t *frame)
{
    uint32_t mode = thread_busy(t);
    if (!shm_is_of_parent())
        note(t, &(struct want){key, type, shared, frame}, mode);
    thread_ready(t, mode);
}

void order_check(struct lt_thread *t, uint64_t key, uint32_t type, bool shared,
                 const uintptr_t *frame)
{
    if (!order_is_known(t, order_hash(t, key, shared)))
        order_note(t, key, type, shared, frame);
}
