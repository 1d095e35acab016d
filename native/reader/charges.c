/* Groups and sums the waits that are charged to holders. */
#include "reader.h"

#include <stdlib.h>
#include <string.h>

void lt_group_charges(const struct lt_charge *charges, uint32_t count, uint32_t *ends,
                      uint32_t lock_count, struct lt_charge *sorted)
{
    uint32_t begin = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (charges[i].lock < lock_count)
            ends[charges[i].lock]++;
    }
    for (uint32_t lock = 0; lock < lock_count; lock++) {
        uint32_t of_lock = ends[lock];
        ends[lock] = begin;
        begin += of_lock;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (charges[i].lock < lock_count)
            sorted[ends[charges[i].lock]++] = charges[i];
    }
}

__extension__ typedef unsigned __int128 wide;

static uint64_t ticks_of(const struct lt_charged_lock *lock, const struct lt_charge *charge)
{
    if (lock->charged <= lock->waited)
        return charge->wait_ticks;
    return (uint64_t)((wide)charge->wait_ticks * lock->waited / lock->charged);
}

uint64_t lt_charged_ticks(const struct lt_charged_lock *lock)
{
    uint64_t ticks = 0;

    for (uint64_t i = 0; i < lock->count; i++)
        ticks += ticks_of(lock, &lock->charges[i]);
    return ticks;
}

/* Returns the index of a stack, `count` if it is not there. */
static uint32_t find(const uint32_t *stacks, uint32_t count, uint32_t stack)
{
    uint32_t from = 0, to = count;

    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (stacks[middle] < stack)
            from = middle + 1;
        else
            to = middle;
    }
    return from < count && stacks[from] == stack ? from : count;
}

/* Returns 0 if there is no room. A row without ticks is empty. */
static int add(struct lt_charge *rows, uint32_t capacity, uint32_t *used, uint32_t holder,
               uint32_t origin, uint64_t ticks)
{
    uint64_t key = (uint64_t)holder << 32 | origin;
    uint32_t mask = capacity - 1, index = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & mask;

    while (rows[index].wait_ticks && (rows[index].holder != holder || rows[index].stack != origin))
        index = (index + 1) & mask;
    if (rows[index].wait_ticks == 0) {
        if (*used >= capacity / 4 * 3)
            return 0;
        (*used)++;
        rows[index] = (struct lt_charge){.holder = holder, .stack = origin, .wait_ticks = ticks};
    } else if (rows[index].wait_ticks + ticks > ticks) { /* else forged, and it would look empty */
        rows[index].wait_ticks += ticks;
    }
    return 1;
}

static int by_most_wait(const void *left, const void *right)
{
    const struct lt_charge *a = left;
    const struct lt_charge *b = right;

    if (a->wait_ticks != b->wait_ticks)
        return a->wait_ticks > b->wait_ticks ? -1 : 1;
    if (a->holder != b->holder)
        return a->holder < b->holder ? -1 : 1;
    return (a->stack > b->stack) - (a->stack < b->stack);
}

uint32_t lt_sum_charges(const struct lt_charged_lock *locks, uint32_t lock_count,
                        const uint32_t *stacks, const uint32_t *origins, uint32_t stack_count,
                        struct lt_charge *rows, uint32_t capacity)
{
    uint32_t used = 0, count = 0;

    for (uint32_t lock = 0; lock < lock_count; lock++) {
        for (uint64_t i = 0; i < locks[lock].count; i++) {
            const struct lt_charge *charge = &locks[lock].charges[i];
            uint32_t index = find(stacks, stack_count, charge->stack);
            uint64_t ticks = ticks_of(&locks[lock], charge);

            if (index < stack_count && ticks &&
                !add(rows, capacity, &used, charge->holder, origins[index], ticks))
                return capacity + 1;
        }
    }
    for (uint32_t index = 0; index < capacity; index++) {
        if (rows[index].wait_ticks)
            rows[count++] = rows[index];
    }
    qsort(rows, count, sizeof *rows, by_most_wait);
    return count;
}
