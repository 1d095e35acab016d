/* Counts the posts of a semaphore, and the signals and broadcasts of a condition. The hooks count
 * before they call the real function. The woken thread finds the signal counted, and the lock may
 * be gone by then. Signal handlers call sem_post() wherever they interrupt: no count is lost
 * there. */
#ifndef LOCKTOP_SIGNAL_COUNTS_H
#define LOCKTOP_SIGNAL_COUNTS_H

#include <stdbool.h>

#include "account/taken_units.h"
#include "base/clock.h"
#include "base/lock_key.h"
#include "base/modes.h"
#include "base/tls.h"
#include "locktop/abi.h"
#include "tables/thread_table.h"

/* Adds one in a thread's own table. A signal handler that counts in the same field must not split
 * the addition. On x86-64 the addition is one instruction, elsewhere the processor begins again. */
static inline void signal_count_once(uint64_t *count)
{
#if defined(__x86_64__)
    __asm__ volatile("incq %0" : "+m"(*count) : : "cc");
#else
    __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
#endif
}

/* Whether a thread posts a semaphore that it had not got. Threads that got a semaphore post it, if
 * the semaphore is a lock. To be called before the post is counted. Each thread is noted once in
 * each life of the semaphore. */
static inline bool is_unheld(const struct lt_counts *counts, uint64_t key)
{
    return has_lives(key) && units_of(counts) <= 0 && !(counts->life & 1);
}

/* The thread's counters of the lock if they are where the hooks look first, else NULL. NULL too if
 * a semaphore has a new life. */
static inline struct lt_counts *signal_counts_of(uint64_t key, uint32_t mode)
{
    struct lt_thread *t = ready(mode);
    if (UNLIKELY(!t))
        return NULL;
    struct lt_lock_counters *table;
    uint64_t home = counters_home(tables_state(t), key, &table);
    if (UNLIKELY(table[home].key != key))
        return NULL;
    if (has_lives(key) && UNLIKELY(is_of_former_life(&table[home])))
        return NULL;
    return &table[home].counts;
}

/* At any level but dormant. Returns where the signal was counted, NULL if nowhere. */
NOINLINE struct lt_counts *signal_count_slowly(uint64_t key, uint32_t mode);

/* Notes a post by a thread that had not got the semaphore. */
void signal_note_unheld(struct lt_counts *counts, uint64_t key);

/* Takes the count back if the real function failed, for then nothing was signalled. Returns
 * `result`, which the real function returned. */
static inline int signal_undo_if(int result, struct lt_counts *counted)
{
    if (UNLIKELY(result != 0) && counted)
        __atomic_fetch_sub(&counted->signals, 1, __ATOMIC_RELAXED);
    return result;
}

/* Writes a record of a signal, at the level that records all. `start`: ticks before the call. */
NOINLINE void signal_record(uint64_t key, enum lt_record type, uint64_t start);

static inline bool signals_are_recorded(uint32_t mode)
{
    return (mode & LEVEL_MASK) == LT_LEVEL_ALL;
}

/* Defines a hook. `is_heard(lock)`: false if no thread waits, and that matters. The rare cases lie
 * apart, so the rest needs next to no registers, and none at all at rest. */
#define SIGNAL_HOOK(name, real, type, kind, record, is_heard)                                      \
    static NOINLINE int name##_slowly(type *lock, uint32_t mode)                                   \
    {                                                                                              \
        struct lt_counts *counted = signal_count_slowly(lock_key(kind, lock), mode);               \
        if (counted && !is_heard(lock))                                                            \
            __atomic_fetch_add(&counted->unheard, 1, __ATOMIC_RELAXED);                            \
        return signal_undo_if(real(lock), counted);                                                \
    }                                                                                              \
    static NOINLINE int name##_recorded(type *lock, uint32_t mode)                                 \
    {                                                                                              \
        uint64_t start = lt_now();                                                                 \
        int result = name##_slowly(lock, mode);                                                    \
        if (result == 0)                                                                           \
            signal_record(lock_key(kind, lock), record, start);                                    \
        return result;                                                                             \
    }                                                                                              \
    static NOINLINE int name##_unheld(type *lock, struct lt_counts *counted)                       \
    {                                                                                              \
        signal_note_unheld(counted, lock_key(kind, lock));                                         \
        return signal_undo_if(real(lock), counted);                                                \
    }                                                                                              \
    EXPORT int name(type *lock)                                                                    \
    {                                                                                              \
        uint32_t mode = current_mode();                                                            \
        if (at_rest(mode))                                                                         \
            return real(lock);                                                                     \
        if (UNLIKELY(signals_are_recorded(mode)))                                                  \
            return name##_recorded(lock, mode);                                                    \
        struct lt_counts *counts = signal_counts_of(lock_key(kind, lock), mode);                   \
        if (UNLIKELY(!counts))                                                                     \
            return name##_slowly(lock, mode);                                                      \
        bool unheld = is_unheld(counts, lock_key(kind, lock));                                     \
        signal_count_once(&counts->signals);                                                       \
        if (!is_heard(lock))                                                                       \
            signal_count_once(&counts->unheard);                                                   \
        if (UNLIKELY(unheld))                                                                      \
            return name##_unheld(lock, counts);                                                    \
        return signal_undo_if(real(lock), counts);                                                 \
    }

#endif
