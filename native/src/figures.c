/* The thread's own tables: its figures for each lock, for each (lock, stack), and the locks it
 * holds. Written by the thread alone; a table that is full moves to one of twice the size. */
#include <string.h>

#include "clock.h"
#include "shm.h"
#include "thread.h"
#include "wait.h"

enum {
    SITES_FIRST = 32,
    SAMPLE_GAP_MAX = 256,
    SAMPLE_COST_READINGS = 5, /* a timed hold costs two readings and about as much as three more */
    SAMPLE_COST_SHARE = 50,   /* 2 %: timing may cost one part in so many */
    PAIR_TICKS = 45           /* a bare lock and unlock, about 18 ns at 2.5 GHz */
};

static bool nearly_full(uint32_t count, uint32_t capacity)
{
    return count >= capacity / 4 * 3;
}

static struct lt_slot *slot_probe(struct lt_slot *slots, unsigned shift, uint64_t key)
{
    uint32_t mask = (uint32_t)((1ull << (64 - shift)) - 1);
    for (uint32_t i = (uint32_t)(lock_hash(key) >> shift);; i = (i + 1) & mask)
        if (slots[i].key == key || slots[i].key == 0)
            return &slots[i];
}

static bool slots_grow(struct lt_thread *t)
{
    struct local *local = local_of(t);
    uint32_t capacity = t->slot_capacity * 2;
    uint64_t offset = shm_alloc((uint64_t)capacity * sizeof(struct lt_slot));
    if (!offset)
        return false;
    struct lt_slot *slots = shm_ptr(offset);
    for (uint32_t i = 0; i < t->slot_capacity; i++)
        if (local->slots[i].key)
            *slot_probe(slots, local->slot_shift - 1, local->slots[i].key) = local->slots[i];
    __atomic_store_n(&t->table_seq, t->table_seq + 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* odd before the fields below change */
    t->slots = offset;
    t->slot_capacity = capacity;
    __atomic_store_n(&t->table_seq, t->table_seq + 1, __ATOMIC_RELEASE);
    local->slots = slots;
    local->slot_shift--;
    return true;
}

static struct lt_slot *slot_insert(struct lt_thread *t, uint64_t key, uint32_t type)
{
    struct local *local = local_of(t);
    if (nearly_full(t->slot_count, t->slot_capacity) && !slots_grow(t) &&
        t->slot_count + 2 >= t->slot_capacity)
        return NULL; /* one empty slot must stay, or a search would not end */
    uint32_t id = locks_id(key, type);
    if (!id)
        return NULL;
    struct lt_slot *slot = slot_probe(local->slots, local->slot_shift, key);
    slot->lock = id;
    slot->sample_at = 1; /* the first hold is timed: it tells how often to time the rest */
    slot->jitter = (uint32_t)(lock_hash(key ^ t->birth) >> 32) | 1;
    __atomic_store_n(&slot->key, key, __ATOMIC_RELEASE);
    t->slot_count++;
    return slot;
}

struct lt_slot *slot_search(struct lt_thread *t, uint64_t key, uint32_t type)
{
    struct local *local = local_of(t);
    struct lt_slot *slot = slot_probe(local->slots, local->slot_shift, key);
    if (slot->key)
        return slot;
    uint32_t mode = thread_busy(t);
    slot = slot_insert(t, key, type);
    thread_ready(t, mode);
    if (slot)
        return slot;
    __atomic_fetch_or(&lt_shm->notes, LT_NOTE_LOCKS_FOLDED, __ATOMIC_RELAXED);
    return &t->other;
}

/* ---- waits by (lock, stack) ---- */

static struct lt_site *site_probe(struct lt_site *sites, uint32_t capacity, uint32_t lock,
                                  uint32_t stack)
{
    uint64_t hash = (((uint64_t)lock << 32) | stack) * 0x9e3779b97f4a7c15u;
    for (uint32_t i = (uint32_t)(hash >> 32) & (capacity - 1);; i = (i + 1) & (capacity - 1))
        if (sites[i].count == 0 || (sites[i].lock == lock && sites[i].stack == stack))
            return &sites[i];
}

static bool sites_grow(struct lt_thread *t)
{
    struct local *local = local_of(t);
    uint32_t capacity = t->site_capacity ? t->site_capacity * 2 : SITES_FIRST;
    uint64_t offset = shm_alloc((uint64_t)capacity * sizeof(struct lt_site));
    if (!offset)
        return false;
    struct lt_site *sites = shm_ptr(offset);
    for (uint32_t i = 0; i < t->site_capacity; i++)
        if (local->sites[i].count)
            *site_probe(sites, capacity, local->sites[i].lock, local->sites[i].stack) =
                local->sites[i];
    __atomic_store_n(&t->table_seq, t->table_seq + 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* odd before the fields below change */
    t->sites = offset;
    t->site_capacity = capacity;
    __atomic_store_n(&t->table_seq, t->table_seq + 1, __ATOMIC_RELEASE);
    local->sites = sites;
    return true;
}

void site_add(struct lt_thread *t, uint32_t lock, uint32_t stack, uint64_t wait)
{
    if (nearly_full(t->site_count, t->site_capacity) && !sites_grow(t) &&
        t->site_count + 2 >= t->site_capacity)
        return; /* counted by lock; only where it came from is missing */
    struct lt_site *site = site_probe(local_of(t)->sites, t->site_capacity, lock, stack);
    if (site->count == 0) {
        site->lock = lock;
        site->stack = stack;
        t->site_count++;
    }
    site->wait_ticks += wait;
    if (wait > site->wait_max)
        site->wait_max = wait;
    __atomic_store_n(&site->count, site->count + 1, __ATOMIC_RELEASE);
}

/* ---- held locks ---- */

/* Entries of locks that other threads release may be stale, and would pile up. */
static bool held_drop_foreign(struct lt_thread *t)
{
    uint32_t kept = 0;
    for (uint32_t at = 0; at < t->held_top; at += (uint32_t)sizeof(struct lt_held))
        if (!locks_is_foreign(held_at(t, at)->lock)) {
            *held_at(t, kept) = *held_at(t, at);
            kept += (uint32_t)sizeof(struct lt_held);
        }
    bool dropped = kept < t->held_top;
    __atomic_store_n(&t->held_top, kept, __ATOMIC_RELEASE);
    return dropped;
}

static bool held_grow(struct lt_thread *t)
{
    if (held_drop_foreign(t))
        return true;
    struct local *local = local_of(t);
    uint32_t mode = thread_busy(t);
    uint64_t offset = shm_alloc((uint64_t)t->held_size * 2);
    if (offset) {
        struct lt_held *list = shm_ptr(offset);
        memcpy(list, local->held, t->held_top);
        __atomic_store_n(&t->held, offset, __ATOMIC_RELEASE);
        t->held_size *= 2;
        local->held = list;
    } else {
        t->held_lost++;
    }
    thread_ready(t, mode);
    return offset != 0;
}

struct lt_held *held_push(struct lt_thread *t, uint64_t key, uint32_t lock, const void *site,
                          uint64_t since, uint16_t flags)
{
    if (t->held_top == t->held_size && !held_grow(t))
        return NULL;
    uint32_t top = t->held_top;
    struct lt_held *held = held_at(t, top);
    held_fill(held, key, lock, site, flags);
    held->since = since;
    /* Release: a reader that sees the length sees the entry. */
    __atomic_store_n(&t->held_top, top + (uint32_t)sizeof *held, __ATOMIC_RELEASE);
    return held;
}

struct lt_held *held_find(struct lt_thread *t, uint64_t key)
{
    uint32_t at = __atomic_load_n(&t->held_top, __ATOMIC_ACQUIRE);
    while (at > 0) {
        at -= (uint32_t)sizeof(struct lt_held);
        if (held_at(t, at)->key == key)
            return held_at(t, at);
    }
    return NULL;
}

static void held_remove(struct lt_thread *t, struct lt_held *held)
{
    char *end = (char *)held_at(t, t->held_top);
    memmove(held, held + 1, (size_t)(end - (char *)(held + 1)));
    __atomic_store_n(&t->held_top, t->held_top - (uint32_t)sizeof *held, __ATOMIC_RELEASE);
}

/* ---- hold times ---- */

static uint32_t random_next(struct lt_slot *slot)
{
    uint32_t x = slot->jitter; /* xorshift32 (Marsaglia 2003) */
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return slot->jitter = x;
}

/* So often that timing stays under 2 % of what a lock, its mean hold and an unlock take, but more
 * often at first; with a random step, or a program of the same rhythm would always show the same. */
static uint64_t sample_gap(struct lt_slot *slot)
{
    uint64_t samples = slot->counts.hold_sampled;
    uint64_t mean = slot->counts.hold_sampled_ticks / samples;
    uint64_t cost = SAMPLE_COST_READINGS * lt_clock.read_ticks;
    uint64_t period = SAMPLE_COST_SHARE * cost / (mean + PAIR_TICKS);
    if (period > SAMPLE_GAP_MAX)
        period = SAMPLE_GAP_MAX;
    if (period > samples)
        period = samples;
    return period <= 1 ? 1 : 1 + random_next(slot) % (2 * period - 1);
}

static void acquired_timed(struct lt_thread *t, struct lt_slot *slot, uint64_t key,
                           const void *site, uint16_t flags)
{
    slot->sample_at = UINT64_MAX; /* until the release sets it anew */
    if (!held_push(t, key, slot->lock, site, lt_now(), flags | LT_HELD_TIMED))
        slot->sample_at = slot->counts.acquisitions + SAMPLE_GAP_MAX;
}

void acquired_slowly(struct lt_thread *t, uint64_t key, uint32_t type, const void *site,
                     uint16_t flags)
{
    struct lt_slot *slot = slot_of(t, key, type);
    if (++slot->counts.acquisitions >= slot->sample_at)
        acquired_timed(t, slot, key, site, flags);
    else
        held_push(t, key, slot->lock, site, 0, flags);
}

static void hold_add(struct lt_slot *slot, const struct lt_held *held, uint64_t ticks)
{
    struct lt_counts *counts = &slot->counts;
    if (ticks > counts->hold_max)
        counts->hold_max = ticks;
    if (held->flags & LT_HELD_CONTENDED) {
        counts->hold_contended++;
        counts->hold_contended_ticks += ticks;
        return;
    }
    counts->hold_sampled++;
    counts->hold_sampled_ticks += ticks;
    slot->sample_at = slot->counts.acquisitions + sample_gap(slot);
}

/* This thread did not list it. If another one does, its list is stale from now on, and so may be
 * every list that names this lock. That is looked for once. */
static void foreign_release(struct lt_thread *t, uint64_t key)
{
    struct lt_lock *lock = locks_find(key);
    if (!lock)
        return;
    if (__atomic_load_n(&lock->foreign_releases, __ATOMIC_RELAXED) || threads_hold(key, t))
        __atomic_fetch_add(&lock->foreign_releases, 1, __ATOMIC_RELAXED);
}

void release_begin(struct lt_thread *t, uint64_t key, struct release *release)
{
    release->held.key = 0;
    release->listed = false;
    struct lt_held *held = held_find(t, key);
    if (!held) {
        foreign_release(t, key);
        return;
    }
    if (held->depth) {
        held->depth--;
        return;
    }
    release->listed = true;
    release->held = *held;
    held_remove(t, held);
    /* Read before the lock is free: afterwards somebody else may run first. */
    release->end = release->held.flags & LT_HELD_TIMED ? lt_now() : 0;
}

void release_end(struct lt_thread *t, const struct release *release)
{
    const struct lt_held *held = &release->held;
    if (!held->key || t != lt_own.block) /* forked meanwhile: the block is the parent's */
        return;
    uint64_t hold = 0;
    bool timed = held->flags & LT_HELD_TIMED;
    if (timed && release->end > held->since)
        hold = release->end - held->since;
    if (timed)
        hold_add(slot_of(t, held->key, 0), held, hold);
    if (held->flags & LT_HELD_CONTENDED)
        detail_write(t, &(struct detail){.type = LT_RECORD_WAIT,
                                         .kind = (uint32_t)(held->key >> LT_KIND_SHIFT),
                                         .lock = held->lock,
                                         .stack = held->stack,
                                         .holder = held->holder,
                                         .start = held->wait_start,
                                         .wait = held->wait_ticks,
                                         .hold = hold,
                                         .site = held->site});
    if (held->flags & LT_HELD_DEFERRED)
        details_flush(t);
}
