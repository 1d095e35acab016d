#include "locks.h"

#include <stdbool.h>
#include <stddef.h>

#include "names.h"
#include "shm.h"
#include "thread.h"

enum { BUCKET_BITS = 14, LOCKS_FIRST = 128 };

static uint32_t *bucket_of(uint64_t key)
{
    uint32_t *buckets = shm_ptr(lt_shm->lock_buckets);
    return &buckets[lock_hash(key) >> (64 - BUCKET_BITS)];
}

int locks_init(void)
{
    array_init(&lt_shm->locks, sizeof(struct lt_lock), LOCKS_FIRST);
    uint32_t other;
    if (!array_push(&lt_shm->locks, &other))
        return -1;
    lt_shm->lock_buckets = shm_alloc(sizeof(uint32_t) << BUCKET_BITS);
    lt_shm->lock_bucket_count = 1u << BUCKET_BITS;
    return lt_shm->lock_buckets ? 0 : -1;
}

/* Walks a chain from lock id `from` to `stop` (exclusive). */
static uint32_t chain_find(uint64_t key, uint32_t from, uint32_t stop)
{
    for (uint32_t id = from; id && id != stop;) {
        const struct lt_lock *lock = array_at(&lt_shm->locks, id);
        if (lock->key == key)
            return id;
        id = lock->next;
    }
    return 0;
}

static uint32_t chain_insert(uint64_t key, uint32_t type, uint32_t *bucket, uint32_t head)
{
    uint32_t id;
    struct lt_lock *lock = array_push(&lt_shm->locks, &id);
    if (!lock)
        return 0;
    lock->type = type;
    for (;;) {
        lock->next = head;
        /* Release: whoever finds the id in the chain finds the entry complete. */
        __atomic_store_n(&lock->key, key, __ATOMIC_RELEASE);
        uint32_t seen = head;
        if (__atomic_compare_exchange_n(bucket, &head, id, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return id;
        uint32_t theirs = chain_find(key, head, seen);
        if (theirs) {
            __atomic_store_n(&lock->key, 0, __ATOMIC_RELEASE); /* an entry that stays unused */
            return theirs;
        }
    }
}

uint32_t locks_id(uint64_t key, uint32_t type)
{
    uint32_t *bucket = bucket_of(key);
    uint32_t head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
    uint32_t id = chain_find(key, head, 0);
    return id ? id : chain_insert(key, type, bucket, head);
}

struct lt_lock *locks_find(uint64_t key)
{
    uint32_t id = chain_find(key, __atomic_load_n(bucket_of(key), __ATOMIC_ACQUIRE), 0);
    return id ? array_at(&lt_shm->locks, id) : NULL;
}

void locks_begin(uint64_t key)
{
    names_forget(key);
    struct lt_lock *lock = locks_find(key);
    if (!lock)
        return;
    /* Lists that were stale in its last life may still be. */
    if (__atomic_load_n(&lock->foreign_releases, __ATOMIC_RELAXED) && !threads_hold(key, NULL))
        __atomic_store_n(&lock->foreign_releases, 0, __ATOMIC_RELAXED);
    __atomic_fetch_add(&lock->generation, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&lock->destroyed, 0, __ATOMIC_RELEASE);
}

void locks_end(uint64_t key)
{
    names_forget(key);
    struct lt_lock *lock = locks_find(key);
    if (lock)
        __atomic_store_n(&lock->destroyed, 1, __ATOMIC_RELEASE);
}

void locks_distrust(uint64_t key)
{
    struct lt_lock *lock = locks_find(key);
    if (lock)
        __atomic_fetch_add(&lock->foreign_releases, 1, __ATOMIC_RELAXED);
}

bool locks_is_foreign(uint32_t id)
{
    const struct lt_lock *lock = array_at(&lt_shm->locks, id);
    return lock && __atomic_load_n(&lock->foreign_releases, __ATOMIC_RELAXED);
}

void locks_wait_begins(uint32_t id)
{
    struct lt_lock *lock = array_at(&lt_shm->locks, id);
    if (lock)
        __atomic_fetch_add(&lock->waits, (1ull << 32) + 1, __ATOMIC_RELAXED);
}

void locks_wait_ends(uint32_t id)
{
    struct lt_lock *lock = array_at(&lt_shm->locks, id);
    if (lock)
        __atomic_fetch_sub(&lock->waits, 1, __ATOMIC_RELAXED);
}

static void add(uint64_t *to, uint64_t value)
{
    __atomic_store_n(to, *to + value, __ATOMIC_RELAXED);
}

static void raise(uint64_t *to, uint64_t value)
{
    if (value > *to)
        __atomic_store_n(to, value, __ATOMIC_RELAXED);
}

void locks_retire_slot(const struct lt_slot *slot)
{
    struct lt_lock *lock = array_at(&lt_shm->locks, slot->lock);
    if (!lock)
        return;
    const struct lt_counts *from = &slot->counts;
    struct lt_counts *to = &lock->retired;
    add(&to->acquisitions, from->acquisitions);
    add(&to->hold_sampled, from->hold_sampled);
    add(&to->hold_sampled_ticks, from->hold_sampled_ticks);
    raise(&to->hold_max, from->hold_max);
    add(&to->contended, from->contended);
    add(&to->trylock_failed, from->trylock_failed);
    add(&to->wait_ticks, from->wait_ticks);
    raise(&to->wait_max, from->wait_max);
    add(&to->hold_contended, from->hold_contended);
    add(&to->hold_contended_ticks, from->hold_contended_ticks);
}

static struct lt_retired_site *site_of(struct lt_lock *lock, uint32_t stack)
{
    for (uint64_t at = lock->sites; at;) {
        struct lt_retired_site *site = shm_ptr(at);
        if (site->stack == stack)
            return site;
        at = site->next;
    }
    uint64_t offset = shm_alloc(sizeof(struct lt_retired_site));
    if (!offset)
        return NULL;
    struct lt_retired_site *site = shm_ptr(offset);
    site->stack = stack;
    site->next = lock->sites;
    __atomic_store_n(&lock->sites, offset, __ATOMIC_RELEASE);
    return site;
}

void locks_retire_site(const struct lt_site *from)
{
    struct lt_lock *lock = array_at(&lt_shm->locks, from->lock);
    struct lt_retired_site *to = lock ? site_of(lock, from->stack) : NULL;
    if (!to)
        return;
    add(&to->count, from->count);
    add(&to->wait_ticks, from->wait_ticks);
}
