/* Folds waits into cells of time, and packs the cells. */
#include "cells.h"

#include <stdlib.h>

#include "reader.h"
#include "slots.h"

/* The latest time that counts, about a hundred years from now. Records may be forged. */
#define LATEST_NS ((double)(1ULL << 62))

enum { NS_OF_US = 1000 };

/* Rounds as Python does: a tie goes to the even number. Keeps forged numbers in range. */
static int64_t nanoseconds(double ns)
{
    int64_t whole;
    double rest;

    if (!(ns > -LATEST_NS && ns < LATEST_NS))
        return ns < 0 ? -(int64_t)LATEST_NS : (int64_t)LATEST_NS;
    whole = (int64_t)ns;
    rest = ns - (double)whole;
    if (rest > 0.5 || (rest == 0.5 && whole % 2))
        whole++;
    if (rest < -0.5 || (rest == -0.5 && whole % 2))
        whole--;
    return whole;
}

static int is_wait(const uint8_t *record)
{
    return slot_is_sound(record) && record[SLOT_TYPE] != LT_RECORD_SIGNAL &&
           record[SLOT_TYPE] != LT_RECORD_BROADCAST && slot_u64(record + SLOT_WAIT) != 0;
}

uint32_t lt_time_waits(const uint8_t *records, uint32_t count, const struct lt_tick_clock *clock,
                       struct lt_timed_wait *waits)
{
    uint32_t number = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *record = records + (uint64_t)i * LT_RECORD_SIZE;
        struct lt_timed_wait *wait = &waits[number];
        int64_t ago;
        if (!is_wait(record))
            continue;
        ago = (int64_t)(clock->ticks - slot_u64(record + SLOT_START));
        wait->from_ns = clock->time_ns - nanoseconds((double)ago * clock->ns_per_tick);
        wait->to_ns = nanoseconds((double)slot_u64(record + SLOT_WAIT) * clock->ns_per_tick);
        if (wait->from_ns < 0 || wait->to_ns > (int64_t)LATEST_NS - wait->from_ns)
            continue;
        wait->to_ns += wait->from_ns;
        wait->lock = slot_u32(record + SLOT_LOCK);
        wait->tid = slot_u32(record + SLOT_TID);
        wait->stack = slot_u32(record + SLOT_STACK);
        wait->kind = record[SLOT_KIND] & ~(uint32_t)LT_KIND_SHARED;
        number++;
    }
    return number;
}

static void put_cells(struct lt_wait_cells *to, const struct lt_timed_wait *wait, int64_t first,
                      int64_t count, int64_t ns)
{
    *to = (struct lt_wait_cells){.ns = (uint64_t)ns,
                                 .lock = wait->lock,
                                 .stack = wait->stack,
                                 .tid = wait->tid,
                                 .kind = wait->kind,
                                 .first = (uint32_t)first,
                                 .count = (uint32_t)count};
}

/* Splits one wait, with times from the begin of the window on. */
static uint32_t split(const struct lt_timed_wait *wait, int64_t from, int64_t to, int64_t cell_ns,
                      struct lt_wait_cells *cells)
{
    int64_t first = from / cell_ns, last = to / cell_ns;
    uint32_t number = 0;

    if (first == last) {
        put_cells(cells, wait, first, 1, to - from);
        return 1;
    }
    if (from > first * cell_ns)
        put_cells(&cells[number++], wait, first, 1, (first + 1) * cell_ns - from);
    else
        first--; /* the first cell is a whole one */
    if (last > first + 1)
        put_cells(&cells[number++], wait, first + 1, last - first - 1, cell_ns);
    if (to > last * cell_ns)
        put_cells(&cells[number++], wait, last, 1, to - last * cell_ns);
    return number;
}

uint32_t lt_split_waits(const struct lt_timed_wait *waits, uint32_t count,
                        const struct lt_cell_window *window, struct lt_wait_cells *cells)
{
    uint32_t number = 0;

    for (uint32_t i = 0; i < count; i++) {
        int64_t from = waits[i].from_ns > window->from_ns ? waits[i].from_ns : window->from_ns;
        int64_t to = waits[i].to_ns < window->to_ns ? waits[i].to_ns : window->to_ns;
        if (from < to)
            number += split(&waits[i], from - window->from_ns, to - window->from_ns,
                            window->cell_ns, &cells[number]);
    }
    return number;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_series(const struct lt_wait_cells *a, const struct lt_wait_cells *b)
{
    int order = compare_numbers(a->lock, b->lock);

    order = order ? order : compare_numbers(a->tid, b->tid);
    order = order ? order : compare_numbers(a->stack, b->stack);
    return order ? order : compare_numbers(a->kind, b->kind);
}

static int compare(const void *a, const void *b)
{
    const struct lt_wait_cells *left = a, *right = b;
    int order = compare_series(left, right);

    order = order ? order : compare_numbers(left->first, right->first);
    return order ? order : compare_numbers(left->count, right->count);
}

uint32_t lt_merge_cells(struct lt_wait_cells *cells, uint32_t count)
{
    uint32_t number = 0;

    qsort(cells, count, sizeof *cells, compare);
    for (uint32_t i = 0; i < count; i++) {
        struct lt_wait_cells *last = number ? &cells[number - 1] : NULL;
        if (last && cells[i].count == 1 && compare(last, &cells[i]) == 0)
            last->ns += cells[i].ns;
        else
            cells[number++] = cells[i];
    }
    return number;
}

uint32_t lt_series_end(const struct lt_wait_cells *cells, uint32_t count, uint32_t begin)
{
    uint32_t end = begin;

    while (end < count && compare_series(&cells[begin], &cells[end]) == 0)
        end++;
    return end;
}

uint32_t lt_pack_cells(const struct lt_wait_cells *cells, uint32_t count, uint32_t *steps,
                       uint32_t *values)
{
    uint64_t rest_ns = 0;
    uint32_t before = 0, number = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct lt_wait_cells *cell = &cells[i];
        int is_run = cell->count > 1;
        uint64_t us = (cell->ns + rest_ns) / NS_OF_US;
        if (!is_run)
            rest_ns = (cell->ns + rest_ns) % NS_OF_US;
        if (!us)
            continue;
        steps[number] = (cell->first - before) << 1 | (uint32_t)is_run;
        values[number++] = is_run ? cell->count : us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
        before = cell->first;
    }
    return number;
}
