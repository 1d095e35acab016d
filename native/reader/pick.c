/* Chooses the locks that are handed to Python, and makes their rows. */
#include "reader.h"

#include <string.h>

#include "locktop/kind_sets.h"

/* Ranks. Locks that the caller wants come first, then locks by the magnitude of their waits. The
 * rest follows by the magnitude of its use. The magnitudes are counted first. So a million locks
 * need no sorting to tell which of them find room. */
enum { WANTED = 130, WAITED = 65, RANKS = 131, NOT_IN_USE = 0 };

static uint32_t magnitude(uint64_t value)
{
    return value ? 64 - (uint32_t)__builtin_clzll(value) : 0;
}

static uint32_t rank(const struct lt_lock_sum *sum, uint64_t key, uint32_t id, int wanted)
{
    if (key == 0 && id != 0)
        return NOT_IN_USE; /* the entry is not complete yet */
    if (wanted)
        return WANTED;
    if (sum->wait_ticks | sum->contended | sum->trylock_failed)
        return WAITED + magnitude(sum->wait_ticks);
    return magnitude(sum->acquisitions | sum->signals);
}

static uint64_t key_of(const uint8_t *locks, uint32_t id)
{
    uint64_t key;

    memcpy(&key, locks + (uint64_t)id * sizeof(struct lt_lock), sizeof key);
    return key;
}

static uint64_t hold_mean(const struct lt_lock_sum *sum)
{
    return sum->hold_sampled ? sum->hold_sampled_ticks / sum->hold_sampled : 0;
}

/* Acquisitions of threads that timed no hold count as long as those of the other threads. */
static uint64_t hold_ticks(const struct lt_lock_sum *sum)
{
    return sum->hold_contended_ticks + sum->hold_scaled_ticks + sum->hold_unscaled * hold_mean(sum);
}

static uint64_t grown(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

static void set_changes(struct lt_lock_row *row, const struct lt_lock_sum *before,
                        const struct lt_lock_sum *now)
{
    row->changed_acquisitions = grown(before->acquisitions, now->acquisitions);
    row->changed_contended = grown(before->contended, now->contended);
    row->changed_signals = grown(before->signals, now->signals);
    row->changed_wait_ticks = grown(before->wait_ticks, now->wait_ticks);
    row->changed_hold_ticks = grown(hold_ticks(before), hold_ticks(now));
}

static void set_row(struct lt_lock_row *row, uint32_t id, const uint8_t *locks,
                    const struct lt_lock_sum *sum, const struct lt_lines_of_locks *lines)
{
    uint64_t line = id < lines->count ? lines->sums[id].lines : 0;
    struct lt_lock lock;

    memcpy(&lock, locks + (uint64_t)id * sizeof lock, sizeof lock);
    memset(row, 0, sizeof *row);
    row->lock = id;
    row->kind = (uint32_t)(lock.key >> LT_KIND_SHIFT);
    row->address = lock.key & (((uint64_t)1 << LT_KIND_SHIFT) - 1);
    row->generation = lock.generation;
    row->destroyed = lock.destroyed;
    row->type = lock.type;
    row->foreign_releases = lock.foreign_releases;
    row->made_at = lock.made_at;
    row->sites = lock.sites;
    row->waits = lock.waits;
    row->acquisitions = sum->acquisitions;
    row->contended = sum->contended;
    row->trylock_failed = sum->trylock_failed;
    row->signals = sum->signals;
    row->unheard = sum->unheard;
    if (lt_kind_is_in(LT_KINDS_WITH_LIVES, row->kind) && lock.parent_posts <= LT_PARENT_POSTS)
        row->parent_posts = lock.parent_posts;
    if (lt_kind_is_in(LT_KINDS_WITH_LIVES, row->kind) && sum->life == lock.generation) {
        row->life_acquisitions = sum->life_acquisitions;
        row->life_signals = sum->life_signals;
    }
    row->wait_ticks = sum->wait_ticks;
    row->wait_max = sum->wait_max;
    row->hold_ticks = hold_ticks(sum);
    row->hold_timed = sum->hold_sampled + sum->hold_contended;
    row->hold_max = sum->hold_max;
    row->hold_mean = hold_mean(sum);
    row->wait_counted = lt_count_in_lines(lines->lines, line, LT_LINE_WAITS);
    row->woken_at = sum->woken_at;
    row->woken_tid = sum->woken_tid;
    row->hold_counted = lt_count_in_lines(lines->lines, line, LT_LINE_HOLDS);
}

/* The lowest rank whose locks all find room. Locks of the next lower rank fill the rest. */
static uint32_t lowest_rank(const uint32_t *counts, uint32_t capacity)
{
    uint64_t total = 0;

    for (uint32_t index = RANKS - 1; index > NOT_IN_USE; index--) {
        total += counts[index];
        if (total > capacity)
            return index + 1;
    }
    return NOT_IN_USE + 1;
}

uint32_t lt_pick_locks(const void *locks, uint32_t count, const struct lt_lock_sum *sums,
                       const struct lt_lock_sum *before, uint32_t before_count,
                       const uint8_t *wanted, const struct lt_lines_of_locks *lines,
                       struct lt_lock_row *rows, uint32_t capacity, uint32_t *left_out)
{
    uint32_t counts[RANKS] = {0};
    uint32_t lowest, whole = 0, rest, written = 0, in_use = 0;

    for (uint32_t id = 0; id < count; id++)
        counts[rank(&sums[id], key_of(locks, id), id, wanted[id])]++;
    lowest = lowest_rank(counts, capacity);
    for (uint32_t index = NOT_IN_USE + 1; index < RANKS; index++) {
        in_use += counts[index];
        whole += index >= lowest ? counts[index] : 0;
    }
    rest = capacity - whole;
    for (uint32_t id = 0; id < count && written < capacity; id++) {
        uint32_t lock_rank = rank(&sums[id], key_of(locks, id), id, wanted[id]);

        if (lock_rank == NOT_IN_USE || lock_rank + 1 < lowest)
            continue;
        if (lock_rank + 1 == lowest && rest-- == 0) {
            rest = 0;
            continue;
        }
        set_row(&rows[written], id, locks, &sums[id], lines);
        if (id < before_count)
            set_changes(&rows[written], &before[id], &sums[id]);
        else if (before_count)
            set_changes(&rows[written], &(struct lt_lock_sum){0}, &sums[id]);
        written++;
    }
    *left_out = in_use - written;
    return written;
}
