/* The slow paths of counting posts, signals and broadcasts. */
#include "account/signal_counts.h"

#include "account/event_ring.h"
#include "shm/segment.h"
#include "tables/lock_table.h"

/* Counts in the lock table, for a thread without tables or inside the library, which may be moving
 * a table. In the latter case the caller is a signal handler. */
static struct lt_counts *count_beside_tables(uint64_t key)
{
    if (shm_is_of_parent())
        return NULL;
    struct lt_counts *counts = lock_signal_counts(key);
    if (!counts) {
        __atomic_fetch_or(&lt_shm->notes, LT_NOTE_LOCKS_FOLDED, __ATOMIC_RELAXED);
        return NULL;
    }
    __atomic_fetch_add(&counts->signals, 1, __ATOMIC_RELAXED);
    if (has_lives(key))
        lock_distrust_once(key); /* the acquisitions are counted elsewhere */
    return counts;
}

void signal_note_unheld(struct lt_counts *counts, uint64_t key)
{
    __atomic_store_n(&counts->life, counts->life | 1, __ATOMIC_RELAXED);
    lock_distrust(key);
}

/* May run in a handler that interrupted another hook. So it registers no thread, begins no watch of
 * a child, changes no level and moves no table. The count is the same at every level. */
struct lt_counts *signal_count_slowly(uint64_t key, uint32_t mode)
{
    if (mode == MODE_CHILD)
        return NULL;
    struct lt_thread *t = __atomic_load_n(&lt_own.block, __ATOMIC_RELAXED);
    struct lt_lock_counters *counters = t && !lt_own.busy ? counters_find_or_fit(t, key, 0) : NULL;
    if (!counters)
        return count_beside_tables(key);
    if (has_lives(key) && is_of_former_life(counters))
        sem_life_renew(counters);
    bool unheld = is_unheld(&counters->counts, key);
    signal_count_once(&counters->counts.signals);
    if (unheld)
        signal_note_unheld(&counters->counts, key);
    return &counters->counts;
}

/* May run in a handler that interrupted another hook, which may be writing a record. */
void signal_record(uint64_t key, enum lt_record type, uint64_t start)
{
    struct lt_thread *t = __atomic_load_n(&lt_own.block, __ATOMIC_RELAXED);
    if (!t || lt_own.busy || shm_is_of_parent())
        return;
    const struct lt_lock_counters *counters = counters_find(t, key);
    if (!counters)
        return;
    struct lock_event event = {.type = type,
                               .kind = (uint32_t)(key >> LT_KIND_SHIFT),
                               .lock = counters->lock,
                               .start = start};
    uint32_t mode = thread_busy(t);
    ring_write(t, &event);
    thread_ready(t, mode);
}
