/* Remembers where locks were initialised, in a table of this process alone. */
#include "tables/init_sites.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/lock_key.h"

enum { SET_BITS = 14, WAYS = 4 };

/* This table is not in shared memory, which would have to be reserved as a whole. Here a page costs
 * nothing before a lock falls into it. A lock falls into one set. If the set is full, the table
 * forgets one of its locks. */
static struct init_site {
    uint64_t key; /* 0: none; BUSY: being written */
    const struct lt_stack *stack;
    uint32_t type;
    uint32_t generation;
    uint32_t process; /* how many forks lie between the first process and the one that noted it */
} table[1u << SET_BITS][WAYS];

static uint32_t this_process;

#define BUSY UINT64_MAX

static struct init_site *set_of(uint64_t key)
{
    return table[lock_hash(key) >> (64 - SET_BITS)];
}

/* The lock's own entry, else an empty one, else any entry of the set. */
static struct init_site *entry_for(uint64_t key)
{
    struct init_site *set = set_of(key),
                     *free_entry = &set[lock_hash(key) >> (62 - SET_BITS) & (WAYS - 1)];

    for (int way = 0; way < WAYS; way++) {
        uint64_t there = __atomic_load_n(&set[way].key, __ATOMIC_RELAXED);
        if (there == key)
            return &set[way];
        if (there == 0)
            free_entry = &set[way];
    }
    return free_entry;
}

/* Of two writers the second gives up: one of them may be a signal handler inside the other. */
void init_site_note(uint64_t key, uint32_t type, const struct lt_stack *stack, uint32_t generation)
{
    struct init_site *entry = entry_for(key);
    if (__atomic_exchange_n(&entry->key, BUSY, __ATOMIC_ACQUIRE) == BUSY)
        return;
    __atomic_store_n(&entry->stack, stack, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->type, type, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->generation, generation, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->process, this_process, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->key, key, __ATOMIC_RELEASE);
}

void init_site_forget(uint64_t key)
{
    struct init_site *set = set_of(key);

    for (int way = 0; way < WAYS; way++) {
        uint64_t there = key;
        __atomic_compare_exchange_n(&set[way].key, &there, 0, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    }
}

/* A copy of the lock's entry. Key 0: there is none, or a writer is at it. */
static struct init_site copy_of(uint64_t key)
{
    const struct init_site *set = set_of(key);

    for (int way = 0; way < WAYS; way++) {
        const struct init_site *entry = &set[way];
        struct init_site copy = {.key = __atomic_load_n(&entry->key, __ATOMIC_ACQUIRE)};
        if (copy.key != key)
            continue;
        copy.stack = __atomic_load_n(&entry->stack, __ATOMIC_RELAXED);
        copy.type = __atomic_load_n(&entry->type, __ATOMIC_RELAXED);
        copy.generation = __atomic_load_n(&entry->generation, __ATOMIC_RELAXED);
        copy.process = __atomic_load_n(&entry->process, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&entry->key, __ATOMIC_RELAXED) == key)
            return copy;
    }
    return (struct init_site){0};
}

const struct lt_stack *init_stack_of(uint64_t key)
{
    return copy_of(key).stack;
}

uint32_t init_type_of(uint64_t key)
{
    return copy_of(key).type;
}

void init_sites_forked(void)
{
    this_process++;
}

bool init_is_of_parent(uint64_t key, uint32_t *type, uint32_t *generation)
{
    struct init_site site = copy_of(key);
    *type = site.type;
    *generation = site.generation;
    return site.key && site.process + 1 == this_process;
}
