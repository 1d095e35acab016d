/* Tests of cells of time: each wait is split, added up and packed, also an odd one. */
#include "cells.h"

#include <string.h>

#include "check.h"
#include "slots.h"

enum { CELL_NS = 1000, CELLS = 10, FROM_NS = 5000, WAITS = 8 };

static const struct lt_cell_window window = {FROM_NS, FROM_NS + CELLS *CELL_NS, CELL_NS};

static uint32_t split_one(int64_t from_ns, int64_t to_ns, struct lt_wait_cells *cells)
{
    struct lt_timed_wait wait = {.from_ns = from_ns, .to_ns = to_ns, .lock = 1, .tid = 2};

    return lt_split_waits(&wait, 1, &window, cells);
}

static void check_cells(const struct lt_wait_cells *cells, uint32_t first, uint32_t count,
                        uint64_t ns)
{
    CHECK_EQUAL(cells->first, first);
    CHECK_EQUAL(cells->count, count);
    CHECK_EQUAL(cells->ns, ns);
}

static void a_wait_has_a_begin_whole_cells_and_an_end(void)
{
    struct lt_wait_cells cells[LT_CELLS_OF_WAIT];

    CHECK_EQUAL(split_one(FROM_NS + 500, FROM_NS + 4300, cells), 3);
    check_cells(&cells[0], 0, 1, 500);
    check_cells(&cells[1], 1, 3, CELL_NS);
    check_cells(&cells[2], 4, 1, 300);
    CHECK_EQUAL(split_one(FROM_NS + 2000, FROM_NS + 3000, cells), 1);
    check_cells(&cells[0], 2, 1, CELL_NS);
    CHECK_EQUAL(split_one(FROM_NS + 2100, FROM_NS + 2101, cells), 1);
    check_cells(&cells[0], 2, 1, 1);
}

static void the_window_cuts_waits(void)
{
    struct lt_wait_cells cells[LT_CELLS_OF_WAIT];

    CHECK_EQUAL(split_one(INT64_MIN, INT64_MAX, cells), 1);
    check_cells(&cells[0], 0, CELLS, CELL_NS);
    CHECK_EQUAL(split_one(0, FROM_NS, cells), 0);
    CHECK_EQUAL(split_one(window.to_ns, INT64_MAX, cells), 0);
    CHECK_EQUAL(split_one(FROM_NS + 7, FROM_NS + 7, cells), 0);
    CHECK_EQUAL(split_one(FROM_NS + 9, FROM_NS + 7, cells), 0);
}

static void equal_cells_are_added_up_and_packed(void)
{
    struct lt_wait_cells cells[WAITS * LT_CELLS_OF_WAIT];
    struct lt_timed_wait waits[WAITS];
    uint32_t steps[WAITS], values[WAITS], count;

    for (uint32_t i = 0; i < WAITS; i++) {
        int64_t from_ns = FROM_NS + 100 * i;
        waits[i] = (struct lt_timed_wait){
            .from_ns = from_ns, .to_ns = from_ns + 60, .lock = 1, .tid = 2 + i % 2, .stack = 3};
    }
    count = lt_split_waits(waits, WAITS, &window, cells);
    CHECK_EQUAL(count, WAITS);
    count = lt_merge_cells(cells, count);
    CHECK_EQUAL(count, 2);
    check_cells(&cells[0], 0, 1, 60 * WAITS / 2);
    CHECK_EQUAL(lt_series_end(cells, count, 0), 1);
    CHECK_EQUAL(lt_series_end(cells, count, 1), 2);
    CHECK_EQUAL(lt_pack_cells(cells, 1, steps, values), 0); /* less than a microsecond */
}

static void a_rounding_error_goes_on(void)
{
    struct lt_wait_cells cells[] = {
        {.ns = 1700, .first = 2, .count = 1},
        {.ns = 20000, .first = 4, .count = 3},
        {.ns = 1400, .first = 9, .count = 1},
    };
    uint32_t steps[3], values[3];

    CHECK_EQUAL(lt_pack_cells(cells, 3, steps, values), 3);
    CHECK_EQUAL(steps[0], 2 << 1);
    CHECK_EQUAL(values[0], 1);
    CHECK_EQUAL(steps[1], 2 << 1 | 1);
    CHECK_EQUAL(values[1], 3);
    CHECK_EQUAL(steps[2], 5 << 1);
    CHECK_EQUAL(values[2], 2);
}

static void damaged_records_are_left_out(void)
{
    struct lt_tick_clock clock = {.ticks = 1, .time_ns = INT64_MAX / 2, .ns_per_tick = 1e9};
    uint8_t records[2 * LT_RECORD_SIZE];
    struct lt_timed_wait waits[2];

    memset(records, 0xff, sizeof records);
    CHECK_EQUAL(lt_time_waits(records, 2, &clock, waits), 0);
}

int main(void)
{
    a_wait_has_a_begin_whole_cells_and_an_end();
    the_window_cuts_waits();
    equal_cells_are_added_up_and_packed();
    a_rounding_error_goes_on();
    damaged_records_are_left_out();
    return 0;
}
