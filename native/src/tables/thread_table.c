/* The tables of one thread: its counters for each lock, and its waits for each (lock, stack). */
#include "tables/thread_table.h"

#include <string.h>

#include "shm/arena.h"
#include "shm/array.h"
#include "shm/control.h"
#include "shm/segment.h"
#include "tables/lock_table.h"

enum {
    FIRST = 32, /* entries of the smallest table, of either kind */
    FIRST_WAITS = 8,
    KEPT = 64 << 10 /* bytes of a table that a block keeps for its next thread */
};

/* In a fuller table too many locks would lie where the hooks do not look first. */
static bool counters_full(uint32_t count, uint32_t capacity)
{
    return count >= capacity / 2;
}

/* No hook searches for these while the program waits for a lock. */
static bool sites_full(uint32_t count, uint32_t capacity)
{
    return count >= capacity / 4 * 3;
}

/* ---- memory of the tables ---- */

/* A block keeps the ranges of all its tables. When all entries have moved out of a smaller table,
 * its pages go back to the system. They are reserved again when the block's next thread grows. So
 * many short-lived threads need no more memory than as many that live at the same time. */
static uint64_t *offset_of_size(uint64_t offsets[TABLE_SIZES], uint32_t capacity)
{
    return &offsets[__builtin_ctz(capacity / FIRST)];
}

/* A program that confined itself gets no pages back after giving them back. */
uint64_t table_room(uint64_t *kept_offset, uint64_t size)
{
    bool is_new = !*kept_offset || shm_is_sealed();
    if (is_new)
        *kept_offset = shm_alloc_reusable(size);
    if (!*kept_offset || !shm_reserve(*kept_offset, size))
        return 0;
    if (!is_new)
        memset(shm_ptr(*kept_offset), 0, size);
    return *kept_offset;
}

/* The key's counters, or the empty entry where they belong. */
static struct lt_lock_counters *counters_probe(struct lt_lock_counters *table, uint64_t home,
                                               uint64_t key)
{
    for (uint64_t i = 0;; i++) { /* ends: one entry is always empty */
        struct lt_lock_counters *counters = &table[home ^ i];
        if (counters->key == key || counters->key == 0)
            return counters;
    }
}

/* The function reads the block before it asks for room, and publishes nothing in a forked child. A
 * signal handler may fork right here, and parent and child both go on. */
static bool counters_grow(struct lt_thread *t)
{
    struct tables_state *state = tables_state(t);
    const struct lt_lock_counters *old = state->counters;
    uint32_t old_capacity = t->counters_capacity, shift = state->counters_shift - 1;
    uint64_t old_offset = t->counters,
             *kept_offset = offset_of_size(state->counters_offsets, 2 * old_capacity);
    uint64_t offset =
        table_room(kept_offset, 2ull * old_capacity * sizeof(struct lt_lock_counters));
    if (!offset)
        return false;
    struct lt_lock_counters *table = shm_ptr(offset);
    for (uint32_t i = 0; i < old_capacity; i++)
        if (old[i].key)
            *counters_probe(table, lock_hash(old[i].key) >> shift, old[i].key) = old[i];
    if (shm_is_of_parent())
        return false;
    thread_tables_begin_change(t);
    t->counters = offset;
    t->counters_capacity = 2 * old_capacity;
    thread_tables_end_change(t);
    __atomic_store_n(&state->counters, table,
                     __ATOMIC_RELAXED); /* in this order: see counters_home() */
    __atomic_store_n(&state->counters_shift, shift, __ATOMIC_RELAXED);
    shm_give_back(old_offset, (uint64_t)old_capacity * sizeof(struct lt_lock_counters));
    return true;
}

/* A table that cannot grow leaves some entries to locks that are waited for. In a fuller table each
 * search for a lock without an entry would take long. */
static bool counters_full_for_good(uint32_t count, uint32_t capacity)
{
    return count >= capacity / 4 * 3;
}

static struct lt_lock_counters *counters_fit(struct lt_thread *t, uint64_t key, uint32_t type,
                                             bool waited)
{
    uint32_t id = waited ? lock_id_of_waited(key, type) : lock_id(key, type);
    if (!id)
        return NULL;
    struct lt_lock_counters *table;
    uint64_t home = counters_home(tables_state(t), key, &table);
    struct lt_lock_counters *counters = counters_probe(table, home, key);
    counters->lock = id;
    counters->sample_at = 0; /* the first hold is timed: it tells how often to time the rest */
    if (has_lives(key)) {
        counters->lock_at = (uint64_t)(uintptr_t)array_at(&lt_shm->locks, id);
        sem_life_renew(counters);
    }
    __atomic_store_n(&counters->key, key, __ATOMIC_RELEASE);
    t->counters_count++;
    return counters;
}

static struct lt_lock_counters *counters_insert(struct lt_thread *t, uint64_t key, uint32_t type,
                                                bool waited)
{
    if (counters_full(t->counters_count, t->counters_capacity) && !counters_grow(t) &&
        (!waited || counters_full_for_good(t->counters_count, t->counters_capacity)))
        return NULL;
    return counters_fit(t, key, type, waited);
}

struct lt_lock_counters *counters_find(struct lt_thread *t, uint64_t key)
{
    struct lt_lock_counters *table;
    uint64_t home = counters_home(tables_state(t), key, &table);
    struct lt_lock_counters *counters = counters_probe(table, home, key);
    return counters->key == key ? counters
                                : NULL; /* a signal handler may have filled the empty one */
}

static struct lt_lock_counters *search(struct lt_thread *t, uint64_t key, uint32_t type,
                                       bool waited)
{
    struct lt_lock_counters *counters = counters_find(t, key);
    if (counters)
        return counters;
    uint32_t mode = thread_busy(t);
    counters = counters_insert(t, key, type, waited);
    thread_ready(t, mode);
    if (counters)
        return counters;
    if (shm_is_of_parent()) {
        control_own(LT_LEVEL_DORMANT); /* the parent's memory is not for the child to write */
        return &t->other;
    }
    __atomic_fetch_or(&lt_shm->notes, LT_NOTE_LOCKS_FOLDED, __ATOMIC_RELAXED);
    return &t->other;
}

struct lt_lock_counters *counters_search(struct lt_thread *t, uint64_t key, uint32_t type)
{
    return search(t, key, type, false);
}

struct lt_lock_counters *counters_find_or_fit(struct lt_thread *t, uint64_t key, uint32_t type)
{
    struct lt_lock_counters *counters = counters_find(t, key);
    if (counters || counters_full(t->counters_count, t->counters_capacity))
        return counters;
    uint32_t mode = thread_busy(t);
    counters = shm_is_of_parent() ? NULL : counters_fit(t, key, type, false);
    thread_ready(t, mode);
    return counters;
}

void counters_time_next_hold(struct lt_thread *t)
{
    struct lt_lock_counters *table = tables_state(t)->counters;
    for (uint32_t i = 0; i < t->counters_capacity; i++) {
        if (!table[i].key)
            continue;
        struct lt_waits *waits = waits_found(t, &table[i]);
        if (waits)
            waits->timing_at = 0; /* of a semaphore: unit_since */
        if (!has_lives(table[i].key))
            table[i].sample_at = 0;
    }
}

/* ---- lives of semaphores ---- */

void sem_life_renew(struct lt_lock_counters *counters)
{
    const struct lt_lock *lock = (const struct lt_lock *)(uintptr_t)counters->lock_at;
    uint64_t life = __atomic_load_n(&lock->generation, __ATOMIC_RELAXED);
    struct lt_counts *counts = &counters->counts;
    __atomic_store_n(&counts->before, counts->signals << 32 | (uint32_t)counts->acquisitions,
                     __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a handler that finds the life finds the rest */
    __atomic_store_n(&counts->life, life << 1, __ATOMIC_RELEASE);
}

struct lt_lock_counters *sem_counters_search(struct lt_thread *t, uint64_t key)
{
    struct lt_lock_counters *counters = counters_search(t, key, 0);
    if (counters->key == key && is_of_former_life(counters))
        sem_life_renew(counters);
    return counters;
}

void sem_life_check(struct lt_thread *t, uint64_t key)
{
    struct lt_lock_counters *counters = counters_find(t, key);
    if (counters && is_of_former_life(counters))
        sem_life_renew(counters);
}

/* ---- waits by lock ---- */

struct lt_waits *sem_waits(struct lt_thread *t, const struct lt_lock_counters *counters)
{
    return counters->waits ? array_at(&t->waits, counters->waits - 1) : NULL;
}

static struct lt_waits *make(struct lt_thread *t, struct lt_lock_counters *counters, bool waited)
{
    uint32_t mode = thread_busy(t), index;
    struct lt_waits *waits =
        waited ? array_push_last(&t->waits, &index) : array_push(&t->waits, &index);
    if (waits && !shm_is_of_parent()) {
        waits->own = (uint64_t)(uintptr_t)array_at(&lt_shm->locks, counters->lock);
        if (!has_lives(counters->key))
            counters->own = (uint64_t)(uintptr_t)waits;
        __atomic_store_n(&counters->waits, index + 1, __ATOMIC_RELEASE);
    }
    thread_ready(t, mode);
    if (waits)
        return waits;
    __atomic_fetch_or(&lt_shm->notes, LT_NOTE_LOCKS_FOLDED, __ATOMIC_RELAXED);
    return &t->other_waits;
}

struct lt_waits *waits_make(struct lt_thread *t, struct lt_lock_counters *counters)
{
    return make(t, counters, false);
}

struct lt_lock_counters *counters_search_waited(struct lt_thread *t, uint64_t key, uint32_t type)
{
    if (!lock_has_reserve(key))
        return counters_of(t, key, type);
    struct lt_lock_counters *counters = search(t, key, type, true);
    if (!waits_found(t, counters))
        make(t, counters, true);
    return counters;
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
    struct tables_state *state = tables_state(t);
    const struct lt_site *old = state->sites;
    uint32_t old_capacity = t->site_capacity;
    uint32_t capacity = old_capacity ? old_capacity * 2 : FIRST;
    uint64_t old_offset = t->sites, *kept_offset = offset_of_size(state->sites_offsets, capacity);
    uint64_t size = (uint64_t)capacity * sizeof(struct lt_site);
    uint64_t offset = table_room(kept_offset, size);
    if (!offset && size < LT_PAGE) /* larger ranges go back in whole pages */
        offset = *kept_offset = shm_alloc_last(size);
    if (!offset)
        return false;
    struct lt_site *sites = shm_ptr(offset);
    for (uint32_t i = 0; i < old_capacity; i++)
        if (old[i].count)
            *site_probe(sites, capacity, old[i].lock, old[i].stack) = old[i];
    if (shm_is_of_parent())
        return false;
    thread_tables_begin_change(t);
    t->sites = offset;
    t->site_capacity = capacity;
    thread_tables_end_change(t);
    state->sites = sites;
    shm_give_back(old_offset, (uint64_t)old_capacity * sizeof(struct lt_site));
    return true;
}

void site_add(struct lt_thread *t, uint32_t lock, uint32_t stack, uint64_t wait)
{
    struct tables_state *state = tables_state(t);
    struct lt_site *site = NULL;
    if (t->site_capacity)
        site = site_probe(state->sites, t->site_capacity, lock, stack);
    if (!site || site->count == 0) {
        if (sites_full(t->site_count, t->site_capacity) && !sites_grow(t))
            return; /* the wait is counted by lock; only its stack is missing */
        site = site_probe(state->sites, t->site_capacity, lock, stack);
        site->lock = lock;
        site->stack = stack;
        t->site_count++;
    }
    site->wait_ticks += wait;
    if (wait > site->wait_max)
        site->wait_max = wait;
    __atomic_store_n(&site->count, site->count + 1, __ATOMIC_RELEASE);
}

/* ---- a block's next thread ---- */

static void set_counters(struct lt_thread *t, uint64_t offset, uint32_t capacity)
{
    struct tables_state *state = tables_state(t);
    t->counters = offset;
    t->counters_capacity = capacity;
    state->counters = shm_ptr(offset);
    state->counters_shift = 64 - (uint32_t)__builtin_ctz(capacity);
}

static void set_sites(struct lt_thread *t, uint64_t offset, uint32_t capacity)
{
    t->sites = offset;
    t->site_capacity = capacity;
    tables_state(t)->sites = offset ? shm_ptr(offset) : NULL;
}

/* Many locks in one entry: no hold times. */
static void other_init(struct lt_thread *t)
{
    memset(&t->other, 0, sizeof t->other);
    memset(&t->other_waits, 0, sizeof t->other_waits);
    t->other.sample_at = UINT64_MAX;
    t->other.own = (uint64_t)(uintptr_t)&t->other_waits;
    t->other_waits.timing_at = UINT64_MAX;
    t->other_waits.own = (uint64_t)(uintptr_t)array_at(&lt_shm->locks, 0);
}

bool thread_table_init(struct lt_thread *t)
{
    struct tables_state *state = tables_state(t);
    uint64_t offset = shm_alloc(FIRST * sizeof(struct lt_lock_counters));
    if (!offset)
        return false;
    *offset_of_size(state->counters_offsets, FIRST) = offset;
    set_counters(t, offset, FIRST);
    array_init(&t->waits, sizeof(struct lt_waits), FIRST_WAITS);
    other_init(t);
    return true;
}

void thread_table_clear(struct lt_thread *t)
{
    struct tables_state *state = tables_state(t);
    uint64_t counters_bytes = t->counters_capacity * sizeof(struct lt_lock_counters);
    uint64_t site_bytes = t->site_capacity * sizeof(struct lt_site);
    if (counters_bytes > KEPT) {
        shm_give_back(t->counters, counters_bytes);
        set_counters(t, *offset_of_size(state->counters_offsets, FIRST), FIRST);
    }
    if (site_bytes > KEPT) {
        shm_give_back(t->sites, site_bytes);
        set_sites(t, *offset_of_size(state->sites_offsets, FIRST), FIRST);
    }
    memset(state->counters, 0, t->counters_capacity * sizeof(struct lt_lock_counters));
    if (state->sites)
        memset(state->sites, 0, t->site_capacity * sizeof(struct lt_site));
    t->counters_count = t->site_count = 0;
    array_clear(&t->waits);
    other_init(t);
}
