/* The tables of one thread: its counters for each lock, and its waits for each (lock, stack). Only
 * the thread writes them. A table that is nearly full moves to one of twice the size. The pages of
 * the old table go back to the system. */
#ifndef LOCKTOP_THREAD_TABLE_H
#define LOCKTOP_THREAD_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock_key.h"
#include "base/tls.h"
#include "locktop/abi.h"
#include "tables/tables_state.h"

/* A reader that meets `table_seq` odd or changed copies the thread's tables again. */
static inline void thread_tables_begin_change(struct lt_thread *t)
{
    __atomic_store_n(&t->table_seq, t->table_seq + 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* odd before what follows */
}

static inline void thread_tables_end_change(struct lt_thread *t)
{
    __atomic_store_n(&t->table_seq, t->table_seq + 1, __ATOMIC_RELEASE);
}

NOINLINE struct lt_lock_counters *counters_search(struct lt_thread *t, uint64_t key, uint32_t type);

/* Where in `table` the search for a key begins; the search goes on at index ^ 1. The shift is read
 * first. A signal handler between the two reads may have moved the table to a larger one. The old
 * shift is within the bounds of the larger table. The new shift is not within those of the old
 * one. */
static inline uint64_t counters_home(const struct tables_state *state, uint64_t key,
                                     struct lt_lock_counters **table)
{
    uint32_t shift = *(const volatile uint32_t *)&state->counters_shift;
    *table = *(struct lt_lock_counters *const volatile *)&state->counters;
    return lock_hash(key) >> shift;
}

static inline struct lt_lock_counters *counters_of(struct lt_thread *t, uint64_t key, uint32_t type)
{
    struct lt_lock_counters *table;
    uint64_t home = counters_home(tables_state(t), key, &table);
    struct lt_lock_counters *counters = &table[home];
    return LIKELY(counters->key == key) ? counters : counters_search(t, key, type);
}

/* Whether the counters of a semaphore were last used before the present life of the semaphore. A
 * load of a line that is written only when a semaphore is made: the usual case stays as cheap. */
static inline bool is_of_former_life(const struct lt_lock_counters *counters)
{
    const struct lt_lock *lock = (const struct lt_lock *)(uintptr_t)counters->lock_at;
    return __atomic_load_n(&lock->generation, __ATOMIC_RELAXED) != counters->counts.life >> 1;
}

/* Notes what the counters of a semaphore were when its present life began. May interrupt itself in
 * a signal handler: both write the same. */
void sem_life_renew(struct lt_lock_counters *counters);

/* The same, if the thread has counters of the semaphore, and they are of a former life. */
void sem_life_check(struct lt_thread *t, uint64_t key);

NOINLINE struct lt_lock_counters *sem_counters_search(struct lt_thread *t, uint64_t key);

/* The counters of a semaphore, in its present life. */
static inline struct lt_lock_counters *sem_counters_of(struct lt_thread *t, uint64_t key)
{
    struct lt_lock_counters *table;
    uint64_t home = counters_home(tables_state(t), key, &table);
    struct lt_lock_counters *counters = &table[home];
    return LIKELY(counters->key == key && !is_of_former_life(counters))
               ? counters
               : sem_counters_search(t, key);
}

/* The same for a wait that is about to begin, with room for the figures of the wait. If there is no
 * room, the lock gets an entry that the table keeps for such locks. */
NOINLINE struct lt_lock_counters *counters_search_waited(struct lt_thread *t, uint64_t key,
                                                         uint32_t type);

static inline struct lt_lock_counters *counters_of_waited(struct lt_thread *t, uint64_t key,
                                                          uint32_t type)
{
    struct lt_lock_counters *table;
    uint64_t home = counters_home(tables_state(t), key, &table);
    struct lt_lock_counters *counters = &table[home];
    return LIKELY(counters->key == key && counters->waits) ? counters
                                                           : counters_search_waited(t, key, type);
}

/* The counters if the thread has any for the lock, else NULL. Makes nothing. */
struct lt_lock_counters *counters_find(struct lt_thread *t, uint64_t key);

/* The counters, made if the table has room as it is; else NULL. May interrupt any hook that is not
 * at work in the library: nothing in the table moves. */
struct lt_lock_counters *counters_find_or_fit(struct lt_thread *t, uint64_t key, uint32_t type);

/* The figures of the waits of a semaphore, NULL if there are none yet. */
NOINLINE struct lt_waits *sem_waits(struct lt_thread *t, const struct lt_lock_counters *counters);

/* The figures of the waits of a lock, NULL if there are none yet. */
static inline struct lt_waits *waits_found(struct lt_thread *t,
                                           const struct lt_lock_counters *counters)
{
    return UNLIKELY(has_lives(counters->key)) ? sem_waits(t, counters)
                                              : (struct lt_waits *)(uintptr_t)counters->own;
}

/* The counters of the thread for a lock that is waited for. */
NOINLINE struct lt_waits *waits_make(struct lt_thread *t, struct lt_lock_counters *counters);

static inline struct lt_waits *waits_of(struct lt_thread *t, struct lt_lock_counters *counters)
{
    struct lt_waits *waits = waits_found(t, counters);
    return LIKELY(waits) ? waits : waits_make(t, counters);
}

/* The offset of an empty table of `size` bytes; 0 if there is no room. The table lies in the range
 * that the block keeps for tables of this size. */
uint64_t table_room(uint64_t *kept_offset, uint64_t size);

/* Gives a new block its first table; false if there is no room. */
bool thread_table_init(struct lt_thread *t);

/* Empties the tables for the block's next thread. */
void thread_table_clear(struct lt_thread *t);

/* Times the next hold of each lock, whatever was planned before. */
void counters_time_next_hold(struct lt_thread *t);

/* Adds a wait to the thread's waits for (lock, stack). */
void site_add(struct lt_thread *t, uint32_t lock, uint32_t stack, uint64_t wait);

#endif
