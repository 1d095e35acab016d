/* Sums up the lines of histograms by lock. */
#include "reader.h"

#include <string.h>

enum { LINES = LT_BUCKETS / LT_LINE_BUCKETS };

static uint32_t lock_of(uint64_t key)
{
    return (uint32_t)key;
}

static uint32_t part_of(uint64_t key)
{
    return (uint32_t)(key >> LT_LINE_PART_SHIFT) & UINT8_MAX;
}

/* The first bucket of a line; LT_BUCKETS or more for a damaged key. */
static uint32_t first_bucket(uint64_t key)
{
    uint64_t number = key >> LT_LINE_NUMBER_SHIFT;

    return number == 0 || number > LINES ? LT_BUCKETS : ((uint32_t)number - 1) * LT_LINE_BUCKETS;
}

static uint32_t kind_of(uint64_t key)
{
    return (uint32_t)(key >> LT_LINE_KIND_SHIFT) & UINT8_MAX;
}

static int is_sound(uint64_t key, uint32_t sum_count)
{
    return lock_of(key) < sum_count && kind_of(key) < LT_KIND_END &&
           part_of(key) <= (LT_LINE_HOLDS | LT_LINE_CARRY) && first_bucket(key) < LT_BUCKETS;
}

int lt_lines_fit(const struct lt_line_sums *to, uint64_t count)
{
    return count <= to->capacity - to->used;
}

/* The index + 1 of the line in the chain of its lock, made at its first use. */
static uint32_t find_in_chain(struct lt_line_sums *to, struct lt_lock_sum *lock, uint64_t key)
{
    struct lt_line_sum *sum;

    for (uint64_t number = lock->lines; number; number = to->table[number - 1].next)
        if (to->table[number - 1].key == key)
            return (uint32_t)number;
    sum = &to->table[to->used++];
    memset(sum, 0, sizeof *sum);
    sum->key = key;
    sum->next = (uint32_t)lock->lines;
    lock->lines = to->used;
    return to->used;
}

/* The threads of most programs use the same lines, which `recent` finds without a walk. */
static struct lt_line_sum *sum_of(struct lt_line_sums *to, struct lt_lock_sum *lock, uint64_t key)
{
    uint32_t *recent = &to->recent[key * 0x9e3779b97f4a7c15u >> 54];

    if (!*recent || to->table[*recent - 1].key != key)
        *recent = find_in_chain(to, lock, key);
    return &to->table[*recent - 1];
}

uint32_t lt_fold_lines(const void *lines, uint64_t size, struct lt_lock_sum *sums,
                       uint32_t sum_count, uint32_t contention, struct lt_line_sums *to,
                       uint64_t *counted)
{
    const uint64_t carried = (uint64_t)LT_LINE_CARRY << LT_LINE_PART_SHIFT;
    uint32_t refused = 0;

    if (*counted)
        memset(to->waits, 0, sizeof to->waits);
    *counted = 0;
    for (uint64_t offset = 0; offset + sizeof(struct lt_histogram_line) <= size;
         offset += sizeof(struct lt_histogram_line)) {
        struct lt_histogram_line line;
        struct lt_line_sum *sum;
        uint64_t *waits = NULL;

        memcpy(&line.key, (const uint8_t *)lines + offset, sizeof line.key);
        if (line.key == 0)
            continue;
        if (!is_sound(line.key, sum_count)) {
            refused++;
            continue;
        }
        memcpy(&line, (const uint8_t *)lines + offset, sizeof line);
        sum = sum_of(to, &sums[lock_of(line.key)], line.key & ~carried);
        if (!(part_of(line.key) & LT_LINE_HOLDS) && contention >> kind_of(line.key) & 1)
            waits = to->waits + first_bucket(line.key);
        for (int i = 0; i < LT_LINE_BUCKETS; i++) {
            uint64_t count = line.counts[i];

            if (line.key & carried)
                count <<= LT_LINE_CARRY_BITS;
            sum->counts[i] += count;
            if (waits) {
                waits[i] += count;
                *counted += count;
            }
        }
    }
    return refused;
}

uint32_t lt_fold_retired_lines(const void *lines, uint64_t size, struct lt_lock_sum *sums,
                               uint32_t sum_count, struct lt_line_sums *to)
{
    uint32_t refused = 0;

    for (uint64_t offset = 0; offset + sizeof(struct lt_line_sum) <= size;
         offset += sizeof(struct lt_line_sum)) {
        struct lt_line_sum line, *sum;

        memcpy(&line, (const uint8_t *)lines + offset, sizeof line);
        if (line.key == 0)
            continue; /* a thread makes the entry */
        if (!is_sound(line.key, sum_count)) {
            refused++;
            continue;
        }
        sum = sum_of(to, &sums[lock_of(line.key)], line.key);
        for (int i = 0; i < LT_LINE_BUCKETS; i++)
            sum->counts[i] += line.counts[i];
    }
    return refused;
}

uint64_t lt_count_in_lines(const struct lt_line_sums *from, uint64_t line, uint32_t part)
{
    uint64_t count = 0;

    for (uint64_t number = line; number; number = from->table[number - 1].next)
        for (int i = 0; part_of(from->table[number - 1].key) == part && i < LT_LINE_BUCKETS; i++)
            count += from->table[number - 1].counts[i];
    return count;
}

uint32_t lt_pick_counts(uint64_t *counts, uint8_t *buckets)
{
    uint32_t picked = 0;

    for (uint32_t bucket = 0; bucket < LT_BUCKETS; bucket++)
        if (counts[bucket]) {
            buckets[picked] = (uint8_t)bucket;
            counts[picked++] = counts[bucket];
        }
    return picked;
}

uint32_t lt_pick_histogram(const struct lt_line_sums *from, const struct lt_lock_sum *sum,
                           uint32_t part, uint64_t *counts, uint8_t *buckets)
{
    memset(counts, 0, LT_BUCKETS * sizeof *counts);
    for (uint64_t number = sum->lines; number; number = from->table[number - 1].next) {
        const struct lt_line_sum *line = &from->table[number - 1];

        for (int i = 0; part_of(line->key) == part && i < LT_LINE_BUCKETS; i++)
            counts[first_bucket(line->key) + (uint32_t)i] += line->counts[i];
    }
    return lt_pick_counts(counts, buckets);
}
