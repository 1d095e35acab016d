/* The histograms of all threads of a process, summed up. cffi reads this file as it reads
 * reader.h. */
#ifndef LOCKTOP_READER_HISTOGRAMS_H
#define LOCKTOP_READER_HISTOGRAMS_H

#include <stdint.h>

#include "locktop/abi.h"

struct lt_lock_sum;

/* The lines of all locks, in a chain for each lock (lt_lock_sum.lines). The caller owns the table.
 */
struct lt_line_sums {
    struct lt_line_sum *table; /* room for `capacity` */
    uint32_t capacity;
    uint32_t used;
    uint64_t left_out;     /* as in struct lt_histograms: of all threads */
    uint64_t waits[252];   /* LT_BUCKETS: waits in contention of the thread that was read last */
    uint32_t recent[1024]; /* by hash of the key: index + 1 of a line that was used lately */
};

/* Whether lines with `count` keys find room. */
int lt_lines_fit(const struct lt_line_sums *to, uint64_t count);

/* Adds the lines of one thread, in `size` bytes, to the sums of their locks. There is room. The
 * waits for kinds in `contention` (a bit for each) replace those in `to->waits`, and `counted` gets
 * their number. `counted` has the number of the former ones. Returns how many lines it left out
 * because their lock or part does not exist. */
uint32_t lt_fold_lines(const void *lines, uint64_t size, struct lt_lock_sum *sums,
                       uint32_t sum_count, uint32_t contention, struct lt_line_sums *to,
                       uint64_t *counted);

/* The same for the lines of ended threads: `size` bytes of struct lt_line_sum. */
uint32_t lt_fold_retired_lines(const void *lines, uint64_t size, struct lt_lock_sum *sums,
                               uint32_t sum_count, struct lt_line_sums *to);

/* The waits or the holds (enum lt_line_part) of a lock that are in its histogram. `line` is
 * lt_lock_sum.lines. */
uint64_t lt_count_in_lines(const struct lt_line_sums *from, uint64_t line, uint32_t part);

/* Writes the numbers of the buckets with a count to `buckets`, and moves these counts to the front
 * of `counts`. Returns how many there are. */
uint32_t lt_pick_counts(uint64_t *counts, uint8_t *buckets);

/* The same for a part (enum lt_line_part) of the histogram of one lock. Both arrays have LT_BUCKETS
 * elements. */
uint32_t lt_pick_histogram(const struct lt_line_sums *from, const struct lt_lock_sum *sum,
                           uint32_t part, uint64_t *counts, uint8_t *buckets);

#endif
