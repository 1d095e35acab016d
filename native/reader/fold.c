/* Adds the counters of threads and the figures of ended threads to sums by lock. */
#include "reader.h"

#include <stddef.h>
#include <string.h>

#include "locktop/kind_sets.h"

enum { ROBUST = 16 }; /* a bit of a mutex's __kind (glibc, nptl/pthreadP.h) */
enum { AHEAD = 16 * sizeof(struct lt_lock_counters) };

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Estimates the holds that were not timed from the timed holds of the same thread. Threads use one
 * lock in different ways (a writer for long, a reader briefly), and sample at different rates. */
static void add_untimed(struct lt_lock_sum *sum, const struct lt_counts *counts,
                        const struct lt_waits *waits, uint64_t uncontended)
{
    uint64_t timed = counts->hold_sampled, ticks = counts->hold_sampled_ticks;

    if (timed == 0) { /* no free hold was timed by chance: holds after a wait are the next best */
        timed = waits->hold_contended;
        ticks = waits->hold_contended_ticks;
    }
    if (timed == 0) {
        sum->hold_unscaled += uncontended;
        return;
    }
    if (counts->hold_sampled)
        uncontended = larger(uncontended, counts->hold_sampled);
    if (uncontended == timed) {
        sum->hold_scaled_ticks += ticks;
        return;
    }
    double scaled = (double)ticks * ((double)uncontended / (double)timed);
    if (scaled < 9e18) /* else torn or forged, and the conversion would be undefined */
        sum->hold_scaled_ticks += (uint64_t)scaled;
}

static void add_contended_holds(struct lt_lock_sum *sum, const struct lt_counts *counts,
                                const struct lt_waits *waits)
{
    sum->hold_contended += waits->hold_contended;
    sum->hold_contended_ticks += waits->hold_contended_ticks;
    sum->hold_max = larger(sum->hold_max, counts->hold_max);
}

static void add_hold(struct lt_lock_sum *sum, const struct lt_counts *counts,
                     const struct lt_waits *waits)
{
    uint64_t uncontended = 0;

    if (counts->acquisitions > waits->hold_contended)
        uncontended = counts->acquisitions - waits->hold_contended;
    sum->hold_sampled += counts->hold_sampled;
    sum->hold_sampled_ticks += counts->hold_sampled_ticks;
    add_contended_holds(sum, counts, waits);
    add_untimed(sum, counts, waits, uncontended);
}

static uint64_t life_acquisitions(const struct lt_counts *counts)
{
    return (uint32_t)counts->acquisitions - (uint32_t)counts->before;
}

static uint64_t life_signals(const struct lt_counts *counts)
{
    return (uint32_t)counts->signals - (uint32_t)(counts->before >> 32);
}

/* Only the counts of the latest life that a thread knows. */
static void add_life(struct lt_lock_sum *sum, const struct lt_counts *counts)
{
    uint64_t life = counts->life >> 1;

    if (life < sum->life)
        return;
    if (life > sum->life) {
        sum->life = life;
        sum->life_acquisitions = sum->life_signals = 0;
    }
    sum->life_acquisitions += life_acquisitions(counts);
    sum->life_signals += life_signals(counts);
}

static void add_counts(struct lt_lock_sum *sum, uint64_t kind, const struct lt_counts *counts,
                       const struct lt_waits *waits)
{
    sum->acquisitions += counts->acquisitions;
    sum->contended += waits->contended;
    sum->trylock_failed += waits->trylock_failed;
    sum->wait_ticks += waits->wait_ticks;
    sum->wait_max = larger(sum->wait_max, waits->wait_max);
    if (lt_kind_is_in(LT_KINDS_SIGNALLED, kind)) {
        sum->signals += counts->signals;
        if (lt_kind_is_in(LT_KINDS_WITH_LIVES, kind))
            add_life(sum, counts);
        else
            sum->unheard += counts->unheard;
    } else if (lt_kind_is_in(LT_KINDS_WOKEN, kind)) {
        add_contended_holds(sum, counts, waits);
    } else {
        add_hold(sum, counts, waits);
    }
}

static struct lt_use use_of(uint64_t kind, const struct lt_lock_counters *counters)
{
    const struct lt_counts *counts = &counters->counts;
    struct lt_use use = {
        .lock = counters->lock,
        .kind = (uint16_t)kind,
        .acquisitions = counts->acquisitions,
        .signals = lt_kind_is_in(LT_KINDS_SIGNALLED, kind) ? counts->signals : 0,
    };

    if (lt_kind_is_in(LT_KINDS_WITH_LIVES, kind)) {
        use.has_signalled = counts->signals > counts->acquisitions || counts->life & 1;
        use.acquisitions = life_acquisitions(counts);
        use.signals = life_signals(counts);
        use.life = counts->life >> 1;
        use.taken_at = counters->taken_at;
    } else {
        use.has_signalled = use.signals > 0;
    }
    return use;
}

static void add_use(struct lt_thread_sum *thread, uint64_t kind,
                    const struct lt_lock_counters *counters)
{
    if (!lt_kind_is_in(LT_KINDS_USES_COUNTED, kind))
        return;
    if (thread->use_count < LT_USES)
        thread->uses[thread->use_count] = use_of(kind, counters);
    thread->use_count += thread->use_count <= LT_USES;
}

static uint32_t add_counters(const struct lt_lock_counters *counters, const struct lt_waits *waits,
                             struct lt_lock_sum *sums, uint32_t sum_count,
                             struct lt_thread_sum *thread)
{
    uint64_t kind = counters->key >> LT_KIND_SHIFT;

    if (kind == LT_KIND_NONE || kind >= LT_KIND_END || counters->lock >= sum_count)
        return 1;
    add_counts(&sums[counters->lock], kind, &counters->counts, waits);
    thread->acquisitions[kind] += counters->counts.acquisitions;
    thread->contended[kind] += waits->contended;
    thread->wait_ticks[kind] += waits->wait_ticks;
    add_use(thread, kind, counters);
    if (lt_kind_is_in(LT_KINDS_TIMED_BY_WAKES, kind) &&
        counters->woken_at > sums[counters->lock].woken_at) {
        sums[counters->lock].woken_at = counters->woken_at;
        sums[counters->lock].woken_tid = thread->tid;
    }
    return 0;
}

/* The counters lie in the order of a hash, so each sum is elsewhere in memory. */
static void fetch_sum_of(const uint8_t *counters, const struct lt_lock_sum *sums,
                         uint32_t sum_count)
{
    uint32_t lock;

    memcpy(&lock, counters + offsetof(struct lt_lock_counters, lock), sizeof lock);
    if (lock < sum_count)
        __builtin_prefetch(&sums[lock], 1);
}

uint32_t lt_fold_counters(const void *counters, uint64_t size, const void *waits,
                          uint32_t wait_count, struct lt_lock_sum *sums, uint32_t sum_count,
                          struct lt_thread_sum *thread)
{
    const uint8_t *bytes = counters, *wait_bytes = waits;
    uint32_t refused = 0;

    for (uint64_t offset = 0; offset + sizeof(struct lt_lock_counters) <= size;
         offset += sizeof(struct lt_lock_counters)) {
        struct lt_lock_counters entry;
        struct lt_waits of_lock = {0};

        if (offset + AHEAD + sizeof entry <= size)
            fetch_sum_of(bytes + offset + AHEAD, sums, sum_count);
        memcpy(&entry.key, bytes + offset, sizeof entry.key);
        if (entry.key == 0)
            continue;
        memcpy(&entry, bytes + offset, sizeof entry);
        if (entry.waits && entry.waits <= wait_count) /* else made while they were copied */
            memcpy(&of_lock, wait_bytes + (uint64_t)(entry.waits - 1) * sizeof of_lock,
                   sizeof of_lock);
        refused += add_counters(&entry, &of_lock, sums, sum_count, thread);
    }
    return refused;
}

void lt_fold_other(const struct lt_thread *block, struct lt_lock_sum *sums, uint32_t sum_count,
                   struct lt_thread_sum *thread)
{
    struct lt_lock_counters other = block->other;
    const struct lt_waits *waits = &block->other_waits;

    /* "Other locks" have no key of their own. */
    other.key = (uint64_t)LT_KIND_MUTEX << LT_KIND_SHIFT;
    other.lock = 0;
    if (other.counts.acquisitions | waits->wait_ticks | waits->trylock_failed)
        add_counters(&other, waits, sums, sum_count, thread);
}

uint32_t lt_fold_retired(const void *retired, uint64_t size, struct lt_lock_sum *sums,
                         uint32_t sum_count)
{
    const uint8_t *bytes = retired;
    uint32_t refused = 0;

    for (uint64_t offset = 0; offset + sizeof(struct lt_retired) <= size;
         offset += sizeof(struct lt_retired)) {
        struct lt_retired entry;

        memcpy(&entry, bytes + offset, sizeof entry);
        if (entry.lock < sum_count)
            add_counts(&sums[entry.lock], entry.kind, &entry.counts, &entry.waits);
        else
            refused++;
    }
    return refused;
}

/* Whether another thread released the lock. A robust mutex refuses that: there a thread took the
 * mutex over from a dead thread. */
static int handed_over(const struct lt_lock *lock)
{
    uint64_t kind = lock->key >> LT_KIND_SHIFT;

    if (kind == LT_KIND_MUTEX)
        return lock->foreign_releases && !(lock->type & ROBUST);
    return kind == LT_KIND_RWLOCK && lock->foreign_releases;
}

uint32_t lt_count_handed_over(const void *locks, uint64_t size)
{
    const uint8_t *bytes = locks;
    uint32_t handed = 0;

    for (uint64_t offset = 0; offset + sizeof(struct lt_lock) <= size;
         offset += sizeof(struct lt_lock)) {
        struct lt_lock lock;

        memcpy(&lock, bytes + offset, sizeof lock);
        handed += (uint32_t)handed_over(&lock);
    }
    return handed;
}
