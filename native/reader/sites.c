#include "reader.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash(uint32_t lock, uint32_t stack)
{
    uint64_t mixed = (((uint64_t)lock << 32) | stack) * 0x9e3779b97f4a7c15u;

    return (uint32_t)(mixed >> 32);
}

static void add(struct lt_site *table, uint32_t capacity, uint32_t *used,
                const struct lt_site *site)
{
    uint32_t mask = capacity - 1;
    uint32_t at = hash(site->lock, site->stack) & mask;

    while (table[at].count && (table[at].lock != site->lock || table[at].stack != site->stack))
        at = (at + 1) & mask;
    if (table[at].count == 0) {
        table[at] = *site;
        (*used)++;
        return;
    }
    /* A sum that wraps to 0 would look empty; only forged counts can do that. */
    if (table[at].count + site->count > table[at].count)
        table[at].count += site->count;
    table[at].wait_ticks += site->wait_ticks;
    if (site->wait_max > table[at].wait_max)
        table[at].wait_max = site->wait_max;
}

static uint64_t filled(const uint8_t *bytes, uint64_t size)
{
    uint64_t count = 0;

    for (uint64_t at = 0; at + sizeof(struct lt_site) <= size; at += sizeof(struct lt_site)) {
        struct lt_site site;

        memcpy(&site, bytes + at, sizeof site);
        count += site.count != 0;
    }
    return count;
}

int lt_fold_sites(const void *sites, uint64_t size, struct lt_site *table, uint32_t capacity,
                  uint32_t *used)
{
    const uint8_t *bytes = sites;

    if (*used + filled(bytes, size) > capacity / 4 * 3)
        return 0;
    for (uint64_t at = 0; at + sizeof(struct lt_site) <= size; at += sizeof(struct lt_site)) {
        struct lt_site site;

        memcpy(&site, bytes + at, sizeof site);
        if (site.count)
            add(table, capacity, used, &site);
    }
    return 1;
}

static int by_lock_then_wait(const void *left, const void *right)
{
    const struct lt_site *a = left;
    const struct lt_site *b = right;

    if (a->lock != b->lock)
        return a->lock < b->lock ? -1 : 1;
    if (a->wait_ticks != b->wait_ticks)
        return a->wait_ticks > b->wait_ticks ? -1 : 1;
    return (a->stack > b->stack) - (a->stack < b->stack);
}

uint32_t lt_sort_sites(struct lt_site *table, uint32_t capacity)
{
    uint32_t count = 0;

    for (uint32_t at = 0; at < capacity; at++) {
        if (table[at].count)
            table[count++] = table[at];
    }
    qsort(table, count, sizeof *table, by_lock_then_wait);
    return count;
}
