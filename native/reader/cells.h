/* Folds waits into cells of time, for a heat map of an hour with millions of waits. cffi reads this
 * file as it reads reader.h.
 *
 * The order of the calls: lt_time_waits() for each batch of records, lt_split_waits(),
 * lt_merge_cells() for all cells together, then lt_series_end() and lt_pack_cells() for each
 * series. A series has the cells of one lock, thread, stack and kind. */
#ifndef LOCKTOP_CELLS_H
#define LOCKTOP_CELLS_H

#include <stdint.h>

/* A wait that is over. Times are nanoseconds since 1970. */
struct lt_timed_wait {
    int64_t from_ns;
    int64_t to_ns;
    uint64_t lock;
    uint64_t stack; /* of a stack that a scan took: above 32 bits */
    uint32_t tid;
    uint32_t kind; /* enum lt_kind, without LT_KIND_SHARED */
};

/* A moment by both clocks. */
struct lt_tick_clock {
    uint64_t ticks;
    int64_t time_ns; /* from 0 to 2^62 */
    double ns_per_tick;
};

/* Writes the sound waits of `count` records to `waits`, which has room for all. Returns their
 * number. Holds without a wait, signals and marks are left out. */
uint32_t lt_time_waits(const uint8_t *records, uint32_t count, const struct lt_tick_clock *clock,
                       struct lt_timed_wait *waits);

/* A span in cells of one length. The last cell may be cut. */
struct lt_cell_window {
    int64_t from_ns;
    int64_t to_ns;   /* less than 2^31 cells from from_ns on */
    int64_t cell_ns; /* above 0 */
};

/* One cell of a series, or several cells in a row that were waited throughout. */
struct lt_wait_cells {
    uint64_t ns; /* waited in each of the cells */
    uint64_t lock;
    uint64_t stack;
    uint32_t tid;
    uint32_t kind;
    uint32_t first; /* number of the first cell */
    uint32_t count; /* of cells */
};

/* The most lt_wait_cells of one wait: its begin, its whole cells, and its end. */
enum lt_cells_limit { LT_CELLS_OF_WAIT = 3 };

/* Splits waits into cells. `cells` has room for LT_CELLS_OF_WAIT times `count`. Returns the number
 * of entries. Time outside the window is left out. */
uint32_t lt_split_waits(const struct lt_timed_wait *waits, uint32_t count,
                        const struct lt_cell_window *window, struct lt_wait_cells *cells);

/* Sorts cells by series, and adds those up that are the same. Returns the number that is left. */
uint32_t lt_merge_cells(struct lt_wait_cells *cells, uint32_t count);

/* Returns the number of the cell behind the series that begins at `begin`. */
uint32_t lt_series_end(const struct lt_wait_cells *cells, uint32_t count, uint32_t begin);

/* Packs one series, whose `count` cells are merged. Each entry has a step and a value; both arrays
 * have room for `count`. The step is twice the distance of its first cell from that of the entry
 * before, plus one for several cells. The value is the number of cells of several, otherwise the
 * microseconds. Their rounding error goes on to the next entry, so the sum of the series is exact
 * to a microsecond. An entry of less than a microsecond is left out. Returns the number of entries.
 */
uint32_t lt_pack_cells(const struct lt_wait_cells *cells, uint32_t count, uint32_t *steps,
                       uint32_t *values);

#endif
