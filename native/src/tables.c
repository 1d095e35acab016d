#include "tables.h"

#include "control.h"
#include "locks.h"
#include "shm.h"

enum { SITES_FIRST = 32 };

/* Fuller, and too many locks would lie where the hooks do not look by themselves. */
static bool nearly_full(uint32_t count, uint32_t capacity)
{
    return count >= capacity / 2;
}

/* The key's slot, or the empty one where it belongs. */
static struct lt_slot *slot_probe(struct lt_slot *slots, uint64_t home, uint64_t key)
{
    for (uint64_t i = 0;; i++) { /* ends: there is always an empty one */
        struct lt_slot *slot = &slots[home ^ i];
        if (slot->key == key || slot->key == 0)
            return slot;
    }
}

/* What it reads of the block it reads before the room is asked for, and it publishes nothing in a
 * forked child: a signal handler may fork right here, and parent and child both go on. */
static bool slots_grow(struct lt_thread *t)
{
    struct local *local = local_of(t);
    const struct lt_slot *old = local->slots;
    uint32_t old_capacity = t->slot_capacity, shift = local->slot_shift - 1;
    uint64_t offset = shm_alloc(2ull * old_capacity * sizeof(struct lt_slot));
    if (!offset)
        return false;
    struct lt_slot *slots = shm_ptr(offset);
    for (uint32_t i = 0; i < old_capacity; i++)
        if (old[i].key)
            *slot_probe(slots, lock_hash(old[i].key) >> shift, old[i].key) = old[i];
    if (shm_is_strangers())
        return false;
    __atomic_store_n(&t->table_seq, t->table_seq + 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* odd before the fields below change */
    t->slots = offset;
    t->slot_capacity = 2 * old_capacity;
    __atomic_store_n(&t->table_seq, t->table_seq + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&local->slots, slots, __ATOMIC_RELAXED); /* in this order: see slot_place() */
    __atomic_store_n(&local->slot_shift, shift, __ATOMIC_RELAXED);
    return true;
}

static struct lt_slot *slot_insert(struct lt_thread *t, uint64_t key, uint32_t type)
{
    if (nearly_full(t->slot_count, t->slot_capacity) && !slots_grow(t))
        return NULL; /* a fuller table would make every search long */
    uint32_t id = locks_id(key, type);
    if (!id)
        return NULL;
    struct lt_slot *slots;
    uint64_t home = slot_place(local_of(t), key, &slots);
    struct lt_slot *slot = slot_probe(slots, home, key);
    slot->lock = id;
    slot->own = (uint64_t)(uintptr_t)array_at(&lt_shm->locks, id);
    slot->sample_at = 0; /* the first hold is timed: it tells how often to time the rest */
    slot->jitter = (uint32_t)(lock_hash(key ^ t->birth) >> 32) | 1;
    __atomic_store_n(&slot->key, key, __ATOMIC_RELEASE);
    t->slot_count++;
    return slot;
}

struct lt_slot *slot_find(struct lt_thread *t, uint64_t key)
{
    struct lt_slot *slots;
    uint64_t home = slot_place(local_of(t), key, &slots);
    struct lt_slot *slot = slot_probe(slots, home, key);
    return slot->key ? slot : NULL;
}

struct lt_slot *slot_search(struct lt_thread *t, uint64_t key, uint32_t type)
{
    struct lt_slot *slot = slot_find(t, key);
    if (slot)
        return slot;
    uint32_t mode = thread_busy(t);
    slot = slot_insert(t, key, type);
    thread_ready(t, mode);
    if (slot)
        return slot;
    if (shm_is_strangers()) {
        control_own(LT_LEVEL_DORMANT); /* nothing of the parent's is ours to write */
        return &t->other;
    }
    __atomic_fetch_or(&lt_shm->notes, LT_NOTE_LOCKS_FOLDED, __ATOMIC_RELAXED);
    return &t->other;
}

void slots_time_next(struct lt_thread *t)
{
    struct lt_slot *slots = local_of(t)->slots;
    for (uint32_t i = 0; i < t->slot_capacity; i++)
        if (slots[i].key)
            slots[i].sample_at = slots[i].timing_at = 0;
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
    const struct lt_site *old = local->sites;
    uint32_t old_capacity = t->site_capacity;
    uint32_t capacity = old_capacity ? old_capacity * 2 : SITES_FIRST;
    uint64_t offset = shm_alloc((uint64_t)capacity * sizeof(struct lt_site));
    if (!offset)
        return false;
    struct lt_site *sites = shm_ptr(offset);
    for (uint32_t i = 0; i < old_capacity; i++)
        if (old[i].count)
            *site_probe(sites, capacity, old[i].lock, old[i].stack) = old[i];
    if (shm_is_strangers())
        return false;
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
    struct local *local = local_of(t);
    struct lt_site *site = NULL;
    if (t->site_capacity)
        site = site_probe(local->sites, t->site_capacity, lock, stack);
    if (!site || site->count == 0) {
        if (nearly_full(t->site_count, t->site_capacity) && !sites_grow(t))
            return; /* counted by lock; only where it came from is missing */
        site = site_probe(local->sites, t->site_capacity, lock, stack);
        site->lock = lock;
        site->stack = stack;
        t->site_count++;
    }
    site->wait_ticks += wait;
    if (wait > site->wait_max)
        site->wait_max = wait;
    __atomic_store_n(&site->count, site->count + 1, __ATOMIC_RELEASE);
}
