/* Counts the posts of a semaphore, and the signals and broadcasts of a condition. The hooks count before
 * they call the real function: whoever is woken by it finds it counted, and the lock may be gone by
 * then. sem_post() is called in signal handlers, wherever they interrupt: no count is lost there. */
#ifndef LOCKTOP_SIGNALLED_H
#define LOCKTOP_SIGNALLED_H

#include <stdbool.h>

#include "base/lock_key.h"
#include "base/tls.h"
#include "locktop/abi.h"
#include "tables/thread_table.h"

/* In a thread's own table. It must not be cut in two by a signal handler that counts in the same
 * place: on x86-64 it is one instruction, elsewhere the processor begins again. */
static inline void signal_count_once(uint64_t *count)
{
#if defined(__x86_64__)
    __asm__ volatile("incq %0" : "+m"(*count) : : "cc");
#else
    __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
#endif
}

/* A semaphore that is a lock is posted by threads that got it. Asked before a post is counted; no
 * thread is told of twice. */
static inline bool is_unheld(const struct lt_counts *counts, uint64_t key)
{
    return key >> LT_KIND_SHIFT == LT_KIND_SEM && counts->signals >= counts->acquisitions &&
           !counts->unheld;
}

/* Where the thread counts the lock, if that is where it looks first, else NULL. */
static inline struct lt_counts *signal_counts_of(uint64_t key, uint32_t mode)
{
    struct lt_thread *t = ready(mode);
    if (UNLIKELY(!t))
        return NULL;
    struct lt_slot *table;
    uint64_t place = counters_home(local_of(t), key, &table);
    return LIKELY(table[place].key == key) ? &table[place].counts : NULL;
}

/* At a level that is not dormant. Returns where it was counted, NULL if nowhere. */
NOINLINE struct lt_counts *signal_count_slowly(uint64_t key, uint32_t mode);

/* Remembers a post by a thread that had not got the semaphore. */
void signal_note_unheld(struct lt_counts *counts, uint64_t key);

/* Where the real function fails nothing was signalled. Returns its result. */
static inline int signal_undo_if(int result, struct lt_counts *counted)
{
    if (UNLIKELY(result != 0) && counted)
        __atomic_fetch_sub(&counted->signals, 1, __ATOMIC_RELAXED);
    return result;
}

/* Defines a hook. `is_heard(lock)`: does anybody wait for it, or is that of no interest? What is rare lies
 * apart: so the rest needs next to no registers, and at rest none. */
#define SIGNAL_HOOK(name, real, type, kind, is_heard)                                              \
    static NOINLINE int name##_slowly(type *lock, uint32_t mode)                                   \
    {                                                                                              \
        struct lt_counts *counted = signal_count_slowly(lock_key(kind, lock), mode);               \
        if (counted && !is_heard(lock))                                                            \
            __atomic_fetch_add(&counted->unheard, 1, __ATOMIC_RELAXED);                            \
        return signal_undo_if(real(lock), counted);                                                \
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
