/* The table of all locks of the process: a tree that only grows. */
#include "tables/lock_table.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/lock_key.h"
#include "locktop/kind_sets.h"
#include "shm/arena.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "tables/init_sites.h"
#include "tables/stack_table.h"

enum {
    ROOT_BITS = 12,
    LOCKS_FIRST = 128,
    RETIRED_FIRST = 32,
    RETIRED_LINES_FIRST = 32,
    MAX_RETIRED_LINES = 32768, /* 4 MiB, which each scan reads */
    /* reserved entries of either array, for locks that are waited for when there is no room */
    RESERVED = 64
};

/* The first element of an array stands for the other locks; the reserved elements come after it. */
struct kept {
    struct lt_array *array;
    uint32_t used;
};
static struct kept kept_locks, kept_retired;

static bool keep(struct kept *kept, struct lt_array *array)
{
    uint32_t index;
    *kept = (struct kept){.array = array};
    for (int i = 0; i <= RESERVED; i++)
        if (!array_push(array, &index))
            return false;
    return true;
}

static void *take(struct kept *kept, uint32_t *index)
{
    uint32_t used = __atomic_load_n(&kept->used, __ATOMIC_RELAXED);
    do {
        if (used == RESERVED)
            return NULL;
    } while (!__atomic_compare_exchange_n(&kept->used, &used, used + 1, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
    *index = used + 1;
    return array_at(kept->array, *index);
}

static void *push(struct kept *kept, uint32_t *index, bool waited)
{
    void *element = array_push(kept->array, index);
    return element || !waited ? element : take(kept, index);
}

bool lock_has_reserve(uint64_t key)
{
    return lt_kind_is_in(LT_KINDS_RESERVED, key >> LT_KIND_SHIFT);
}

int lock_table_init(void)
{
    array_init(&lt_shm->locks, sizeof(struct lt_lock), LOCKS_FIRST);
    array_init(&lt_shm->retired, sizeof(struct lt_retired), RETIRED_FIRST);
    array_init(&lt_shm->retired_lines, sizeof(struct lt_line_sum), RETIRED_LINES_FIRST);
    if (!keep(&kept_locks, &lt_shm->locks) || !keep(&kept_retired, &lt_shm->retired))
        return -1;
    struct lt_lock *other = array_at(&lt_shm->locks, 0);
    other->retired = 1;
    lt_shm->lock_roots = shm_alloc(sizeof(uint32_t) << ROOT_BITS);
    lt_shm->lock_root_count = 1u << ROOT_BITS;
    return lt_shm->lock_roots ? 0 : -1;
}

/* A search on its way down the tree. */
struct search {
    uint64_t key;
    uint64_t path;  /* the bits of the hash that still choose the way */
    uint32_t *link; /* to the id of the next lock */
};

static struct search search_begin(uint64_t key)
{
    uint64_t hash = lock_hash(key);
    uint32_t *roots = shm_ptr(lt_shm->lock_roots);
    return (struct search){key, hash << ROOT_BITS, &roots[hash >> (64 - ROOT_BITS)]};
}

/* Whether lock `id` is the one searched for; else the search goes on below that lock. */
static bool search_ends_at(struct search *search, uint32_t id)
{
    struct lt_lock *lock = array_at(&lt_shm->locks, id);
    if (lock->key == search->key)
        return true;
    search->link = &lock->child[search->path >> 62];
    search->path <<= 2;
    return false;
}

/* The lock's id; or 0, and then `search` stands where the lock belongs. */
static uint32_t search_run(struct search *search)
{
    uint32_t id;
    while ((id = __atomic_load_n(search->link, __ATOMIC_ACQUIRE)))
        if (search_ends_at(search, id))
            return id;
    return 0;
}

static uint32_t enter(struct search *search, uint32_t type, bool waited)
{
    uint32_t id;
    struct lt_lock *lock = push(&kept_locks, &id, waited);
    if (!lock)
        return 0;
    lock->type = type ? type : init_type_of(search->key);
    const struct lt_stack *made_at = init_stack_of(search->key);
    lock->made_at = made_at ? stack_id(stack_frames(made_at), made_at->depth) : 0;
    __atomic_store_n(&lock->key, search->key, __ATOMIC_RELEASE);
    for (;;) {
        uint32_t theirs = 0;
        /* Release: a thread that finds the id finds the entry complete. */
        if (__atomic_compare_exchange_n(search->link, &theirs, id, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return id;
        if (search_ends_at(search, theirs)) {
            /* else a child that was forked right here has gone on with the entry */
            if (theirs != id)
                __atomic_store_n(&lock->key, 0, __ATOMIC_RELEASE); /* the entry stays unused */
            return theirs;
        }
    }
}

static uint32_t find_or_enter(uint64_t key, uint32_t type, bool waited)
{
    struct search search = search_begin(key);
    uint32_t id = search_run(&search);
    return id ? id : enter(&search, type, waited);
}

uint32_t lock_id(uint64_t key, uint32_t type)
{
    return find_or_enter(key, type, false);
}

uint32_t lock_id_of_waited(uint64_t key, uint32_t type)
{
    return find_or_enter(key, type, lock_has_reserve(key));
}

uint32_t lock_id_if_known(uint64_t key)
{
    struct search search = search_begin(key);
    return search_run(&search);
}

struct lt_lock *lock_find(uint64_t key)
{
    uint32_t id = lock_id_if_known(key);
    return id ? array_at(&lt_shm->locks, id) : NULL;
}

void lock_distrust(uint64_t key)
{
    struct lt_lock *lock = lock_find(key);
    if (lock)
        __atomic_fetch_add(&lock->foreign_releases, 1, __ATOMIC_RELAXED);
}

void lock_distrust_once(uint64_t key)
{
    const struct lt_lock *lock = lock_find(key);
    if (lock && !__atomic_load_n(&lock->foreign_releases, __ATOMIC_RELAXED))
        lock_distrust(key);
}

bool lock_is_distrusted(uint32_t id)
{
    const struct lt_lock *lock = array_at(&lt_shm->locks, id);
    return lock && __atomic_load_n(&lock->foreign_releases, __ATOMIC_RELAXED);
}

static void add(uint64_t *to, uint64_t value)
{
    __atomic_fetch_add(to, value, __ATOMIC_RELAXED); /* the signals have other writers too */
}

static void raise(uint64_t *to, uint64_t value)
{
    if (value > *to)
        __atomic_store_n(to, value, __ATOMIC_RELAXED);
}

static void retire_waits(struct lt_waits *to, const struct lt_waits *from)
{
    add(&to->contended, from->contended);
    add(&to->trylock_failed, from->trylock_failed);
    add(&to->wait_ticks, from->wait_ticks);
    raise(&to->wait_max, from->wait_max);
    add(&to->hold_contended, from->hold_contended);
    add(&to->hold_contended_ticks, from->hold_contended_ticks);
}

/* The figures of ended threads for a lock, made by the first thread that needs them. Of two entries
 * made at once, one stays unused. NULL if there is no room. */
static struct lt_retired *retired_of(uint32_t id, bool waited)
{
    struct lt_lock *lock = array_at(&lt_shm->locks, id);
    if (!lock)
        return NULL;
    uint32_t index, number = __atomic_load_n(&lock->retired, __ATOMIC_ACQUIRE);
    if (!number) {
        struct lt_retired *retired = push(&kept_retired, &index, waited);
        if (!retired)
            return NULL;
        retired->lock = id;
        retired->kind = (uint32_t)(lock->key >> LT_KIND_SHIFT);
        if (__atomic_compare_exchange_n(&lock->retired, &number, index + 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return retired;
    }
    return array_at(&lt_shm->retired, number - 1);
}

struct lt_counts *lock_signal_counts(uint64_t key)
{
    uint32_t id = lock_id(key, 0);
    struct lt_retired *retired = id ? retired_of(id, false) : NULL;
    return retired ? &retired->counts : NULL;
}

static bool counts_signals(uint64_t key)
{
    return lt_kind_is_in(LT_KINDS_SIGNALLED, key >> LT_KIND_SHIFT);
}

static uint32_t generation_of(uint32_t id)
{
    const struct lt_lock *lock = array_at(&lt_shm->locks, id);
    return __atomic_load_n(&lock->generation, __ATOMIC_RELAXED);
}

/* The function returns the counts of a semaphore at the beginning of the life `generation`. */
static uint64_t before_life(const struct lt_counts *counts, uint32_t generation)
{
    return counts->life >> 1 == generation ? counts->before
                                           : counts->signals << 32 | (uint32_t)counts->acquisitions;
}

/* The sums of ended threads keep apart what they did in the present life of the semaphore. */
static void retire_sem(struct lt_counts *to, const struct lt_counts *from, uint32_t generation)
{
    uint64_t a = before_life(to, generation), b = before_life(from, generation);
    to->before = ((a >> 32) + (b >> 32)) << 32 | (uint32_t)((uint32_t)a + (uint32_t)b);
    to->life = (uint64_t)generation << 1;
    add(&to->signals, from->signals);
}

void lock_retire_counters(const struct lt_lock_counters *counters, const struct lt_waits *waits)
{
    struct lt_retired *retired =
        retired_of(counters->lock, waits && waits->wait_ticks && lock_has_reserve(counters->key));
    if (!retired)
        retired = retired_of(0, false); /* counters that find no room go to the other locks */
    if (!retired)
        return;
    const struct lt_counts *from = &counters->counts;
    struct lt_counts *to = &retired->counts;
    bool is_own = retired->lock == counters->lock;
    bool by_life = has_lives(counters->key);
    if (by_life && is_own) {
        retire_sem(to, from, generation_of(counters->lock));
    } else if (!counts_signals(counters->key) || (!by_life && is_own)) {
        /* for a condition: the signals, counted there too */
        add(&to->hold_sampled, from->hold_sampled);
        add(&to->hold_sampled_ticks, from->hold_sampled_ticks);
        raise(&to->hold_max, from->hold_max);
    }
    add(&to->acquisitions, from->acquisitions);
    if (waits)
        retire_waits(&retired->waits, waits);
}

static struct lt_retired_site *site_of(struct lt_lock *lock, uint32_t stack, uint32_t blame)
{
    for (uint64_t offset = lock->sites; offset;) {
        struct lt_retired_site *site = shm_ptr(offset);
        if (site->stack == stack && site->blame == blame)
            return site;
        offset = site->next;
    }
    uint64_t offset = shm_alloc_last(sizeof(struct lt_retired_site));
    if (!offset)
        return NULL;
    struct lt_retired_site *site = shm_ptr(offset);
    site->stack = stack;
    site->blame = blame;
    site->next = lock->sites;
    __atomic_store_n(&lock->sites, offset, __ATOMIC_RELEASE);
    return site;
}

void lock_retire_site(const struct lt_site *from)
{
    uint32_t blame = !!(from->lock & LT_SITE_BLAME);
    struct lt_lock *lock = array_at(&lt_shm->locks, from->lock & ~(uint32_t)LT_SITE_BLAME);
    struct lt_retired_site *to = lock ? site_of(lock, from->stack, blame) : NULL;
    if (!to)
        return;
    add(&to->count, from->count);
    add(&to->wait_ticks, from->wait_ticks);
}

static struct lt_line_sum *line_of(struct lt_retired *retired, uint64_t key)
{
    struct lt_array *lines = &lt_shm->retired_lines;
    for (uint32_t next = retired->lines; next;) {
        struct lt_line_sum *line = array_at(lines, next - 1);
        if (line->key == key)
            return line;
        next = line->next;
    }
    uint32_t index;
    struct lt_line_sum *line = lines->count < MAX_RETIRED_LINES ? array_push(lines, &index) : NULL;
    if (!line)
        return NULL;
    line->key = key;
    line->next = retired->lines;
    retired->lines = index + 1;
    return line;
}

void lock_retire_line(const struct lt_histogram_line *from)
{
    const uint64_t carried = (uint64_t)LT_LINE_CARRY << LT_LINE_PART_SHIFT;
    const uint64_t kind = (uint64_t)UINT8_MAX << LT_LINE_KIND_SHIFT;
    const struct lt_lock *lock = array_at(&lt_shm->locks, (uint32_t)from->key);
    struct lt_retired *retired = NULL;
    uint64_t key = from->key & ~carried;
    if (lock && lock->retired)
        retired = array_at(&lt_shm->retired, lock->retired - 1);
    if (!retired) { /* as lock_retire_counters() does */
        retired = retired_of(0, false);
        key = (key & ~(kind | UINT32_MAX)) | (uint64_t)LT_KIND_MUTEX << LT_LINE_KIND_SHIFT;
    }
    struct lt_line_sum *to = line_of(retired, key);
    uint32_t shift = from->key & carried ? LT_LINE_CARRY_BITS : 0;
    for (int i = 0; i < LT_LINE_BUCKETS; i++)
        *(to ? &to->counts[i] : &lt_shm->lines_left_out) += (uint64_t)from->counts[i] << shift;
}
