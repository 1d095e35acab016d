#include "reader.h"

#include <string.h>

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* A thread samples its holds at a rate of its own, so each is scaled by its own sample. */
static void add_hold(struct lt_lock_sum *sum, const struct lt_counts *counts) {
    uint64_t uncontended = 0;

    if (counts->acquisitions > counts->hold_contended)
        uncontended = counts->acquisitions - counts->hold_contended;
    sum->hold_sampled += counts->hold_sampled;
    sum->hold_sampled_ticks += counts->hold_sampled_ticks;
    sum->hold_contended += counts->hold_contended;
    sum->hold_contended_ticks += counts->hold_contended_ticks;
    sum->hold_max = most(sum->hold_max, counts->hold_max);
    if (counts->hold_sampled == 0) {
        sum->hold_unscaled += uncontended;
    } else {
        double factor = (double)most(uncontended, counts->hold_sampled) / (double)counts->hold_sampled;
        double scaled = (double)counts->hold_sampled_ticks * factor;

        if (scaled < 9e18) /* else torn or forged, and the conversion would be undefined */
            sum->hold_scaled_ticks += (uint64_t)scaled;
    }
}

static void add_counts(struct lt_lock_sum *sum, const struct lt_counts *counts) {
    sum->acquisitions += counts->acquisitions;
    sum->contended += counts->contended;
    sum->trylock_failed += counts->trylock_failed;
    sum->wait_ticks += counts->wait_ticks;
    sum->wait_max = most(sum->wait_max, counts->wait_max);
    add_hold(sum, counts);
}

uint32_t lt_fold_slots(const void *slots, uint64_t size, struct lt_lock_sum *sums,
                       uint32_t sum_count, struct lt_thread_sum *thread) {
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

void lt_fold_retired(const void *locks, uint64_t size, uint32_t first, struct lt_lock_sum *sums,
                     uint32_t sum_count) {
    const uint8_t *bytes = locks;
    uint64_t id = first;

    for (uint64_t at = 0; at + sizeof(struct lt_lock) <= size && id < sum_count; id++) {
        struct lt_lock lock;

        memcpy(&lock, bytes + at, sizeof lock);
        if (lock.retired.acquisitions | lock.retired.wait_ticks | lock.retired.trylock_failed)
            add_counts(&sums[id], &lock.retired);
        at += sizeof lock;
    }
}
