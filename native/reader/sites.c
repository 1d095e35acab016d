/* Sums the waits of all threads by lock and stack. */
#include "reader.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash(const struct lt_site_sum *sum)
{
    uint64_t mixed = (((uint64_t)sum->lock << 32) | sum->stack) ^ (uint64_t)sum->living << 40;

    return (uint32_t)(mixed * 0x9e3779b97f4a7c15u >> 32);
}

static int is_of_one(const struct lt_site_sum *a, const struct lt_site_sum *b)
{
    return a->lock == b->lock && a->stack == b->stack && a->living == b->living &&
           a->blame == b->blame;
}

static void add(struct lt_site_sum *table, uint32_t capacity, uint32_t *used,
                const struct lt_site_sum *sum)
{
    uint32_t mask = capacity - 1;
    uint32_t index = hash(sum) & mask;

    while (table[index].count && !is_of_one(&table[index], sum))
        index = (index + 1) & mask;
    if (table[index].count == 0) {
        table[index] = *sum;
        (*used)++;
        return;
    }
    /* A sum that wraps to 0 would look empty; only forged counts can do that. */
    if (table[index].count + sum->count > table[index].count)
        table[index].count += sum->count;
    table[index].wait_ticks += sum->wait_ticks;
    if (sum->wait_max > table[index].wait_max)
        table[index].wait_max = sum->wait_max;
}

static int has_room(uint64_t more, uint32_t capacity, uint32_t used)
{
    return used + more <= capacity / 4 * 3;
}

static uint64_t filled(const uint8_t *bytes, uint64_t size)
{
    uint64_t count = 0;

    for (uint64_t offset = 0; offset + sizeof(struct lt_site) <= size;
         offset += sizeof(struct lt_site)) {
        struct lt_site site;

        memcpy(&site, bytes + offset, sizeof site);
        count += site.count != 0;
    }
    return count;
}

static struct lt_site_sum sum_of(const struct lt_site *site)
{
    uint32_t blame = !!(site->lock & LT_SITE_BLAME);

    return (struct lt_site_sum){.lock = site->lock & ~(uint32_t)LT_SITE_BLAME,
                                .blame = blame,
                                .stack = site->stack,
                                .living = blame,
                                .count = site->count,
                                .wait_ticks = site->wait_ticks,
                                .wait_max = site->wait_max};
}

static struct lt_charge charge_of(const struct lt_site_sum *sum, uint32_t tid)
{
    return (struct lt_charge){
        .lock = sum->lock, .stack = sum->stack, .holder = tid, .wait_ticks = sum->wait_ticks};
}

int lt_fold_sites(const void *sites, uint64_t size, uint32_t tid, struct lt_sites *to)
{
    const uint8_t *bytes = sites;
    uint64_t count = filled(bytes, size);

    if (!has_room(count, to->capacity, to->used))
        return LT_READ_MORE_SITES;
    if (to->charge_count + count > to->charge_capacity)
        return LT_READ_MORE_CHARGES;
    for (uint64_t offset = 0; offset + sizeof(struct lt_site) <= size;
         offset += sizeof(struct lt_site)) {
        struct lt_site site;

        memcpy(&site, bytes + offset, sizeof site);
        if (site.count) {
            struct lt_site_sum sum = sum_of(&site);
            add(to->table, to->capacity, &to->used, &sum);
            if (sum.blame)
                to->charges[to->charge_count++] = charge_of(&sum, tid);
        }
    }
    return LT_READ_DONE;
}

int lt_fold_site_sums(const struct lt_site_sum *sums, uint32_t count, struct lt_site_sum *table,
                      uint32_t capacity, uint32_t *used)
{
    if (!has_room(count, capacity, *used))
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (sums[i].count)
            add(table, capacity, used, &sums[i]);
    }
    return 1;
}

static int by_lock_then_wait(const void *left, const void *right)
{
    const struct lt_site_sum *a = left;
    const struct lt_site_sum *b = right;

    if (a->lock != b->lock)
        return a->lock < b->lock ? -1 : 1;
    if (a->wait_ticks != b->wait_ticks)
        return a->wait_ticks > b->wait_ticks ? -1 : 1;
    if (a->stack != b->stack)
        return a->stack < b->stack ? -1 : 1;
    return (a->living > b->living) - (a->living < b->living);
}

uint32_t lt_sort_sites(struct lt_site_sum *table, uint32_t capacity)
{
    uint32_t count = 0;

    for (uint32_t index = 0; index < capacity; index++) {
        if (table[index].count)
            table[count++] = table[index];
    }
    qsort(table, count, sizeof *table, by_lock_then_wait);
    return count;
}
