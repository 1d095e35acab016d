#include "reader.h"

#include <string.h>

enum { ROBUST = 16 }; /* a bit of a mutex's __kind (glibc, nptl/pthreadP.h) */

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Holds that were not timed, estimated from those of the same thread that were: threads use one
 * lock in different ways (a writer for long, a reader briefly) and sample at rates of their own. */
static void add_untimed(struct lt_lock_sum *sum, const struct lt_counts *counts,
                        uint64_t uncontended)
{
    uint64_t timed = counts->hold_sampled, ticks = counts->hold_sampled_ticks;

    if (timed == 0) { /* none by chance: those after a wait are the next best */
        timed = counts->hold_contended;
        ticks = counts->hold_contended_ticks;
    }
    if (timed == 0) {
        sum->hold_unscaled += uncontended;
        return;
    }
    if (counts->hold_sampled)
        uncontended = most(uncontended, counts->hold_sampled);
    double scaled = (double)ticks * ((double)uncontended / (double)timed);
    if (scaled < 9e18) /* else torn or forged, and the conversion would be undefined */
        sum->hold_scaled_ticks += (uint64_t)scaled;
}

static void add_hold(struct lt_lock_sum *sum, const struct lt_counts *counts)
{
    uint64_t uncontended = 0;

    if (counts->acquisitions > counts->hold_contended)
        uncontended = counts->acquisitions - counts->hold_contended;
    sum->hold_sampled += counts->hold_sampled;
    sum->hold_sampled_ticks += counts->hold_sampled_ticks;
    sum->hold_contended += counts->hold_contended;
    sum->hold_contended_ticks += counts->hold_contended_ticks;
    sum->hold_max = most(sum->hold_max, counts->hold_max);
    add_untimed(sum, counts, uncontended);
}

static void add_counts(struct lt_lock_sum *sum, const struct lt_counts *counts)
{
    sum->acquisitions += counts->acquisitions;
    sum->contended += counts->contended;
    sum->trylock_failed += counts->trylock_failed;
    sum->wait_ticks += counts->wait_ticks;
    sum->wait_max = most(sum->wait_max, counts->wait_max);
    add_hold(sum, counts);
}

uint32_t lt_fold_slots(const void *slots, uint64_t size, struct lt_lock_sum *sums,
                       uint32_t sum_count, struct lt_thread_sum *thread)
{
    const uint8_t *bytes = slots;
    uint32_t refused = 0;

    for (uint64_t at = 0; at + sizeof(struct lt_slot) <= size; at += sizeof(struct lt_slot)) {
        struct lt_slot slot;
        uint64_t kind;

        memcpy(&slot.key, bytes + at, sizeof slot.key);
        if (slot.key == 0)
            continue;
        memcpy(&slot, bytes + at, sizeof slot);
        kind = slot.key >> LT_KIND_SHIFT;
        if (kind == LT_KIND_NONE || kind > LT_KIND_CUSTOM || slot.lock >= sum_count) {
            refused++;
            continue;
        }
        add_counts(&sums[slot.lock], &slot.counts);
        thread->acquisitions[kind] += slot.counts.acquisitions;
        thread->contended[kind] += slot.counts.contended;
        thread->wait_ticks[kind] += slot.counts.wait_ticks;
    }
    return refused;
}

/* A robust mutex, which refuses a stranger's release, was taken over from a dead thread. */
static int handed_over(const struct lt_lock *lock)
{
    uint64_t kind = lock->key >> LT_KIND_SHIFT;

    if (kind == LT_KIND_MUTEX)
        return lock->foreign_releases && !(lock->type & ROBUST);
    return kind == LT_KIND_RWLOCK && lock->foreign_releases;
}

uint32_t lt_fold_retired(const void *locks, uint64_t size, uint32_t first, struct lt_lock_sum *sums,
                         uint32_t sum_count)
{
    const uint8_t *bytes = locks;
    uint32_t handed = 0;
    uint64_t id = first;

    for (uint64_t at = 0; at + sizeof(struct lt_lock) <= size && id < sum_count; id++) {
        struct lt_lock lock;

        memcpy(&lock, bytes + at, sizeof lock);
        if (lock.retired.acquisitions | lock.retired.wait_ticks | lock.retired.trylock_failed)
            add_counts(&sums[id], &lock.retired);
        handed += (uint32_t)handed_over(&lock);
        at += sizeof lock;
    }
    return handed;
}
