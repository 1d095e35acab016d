/* Counts events of a thread. cffi reads this file as it reads reader.h. */
#ifndef LOCKTOP_READER_COUNTER_H
#define LOCKTOP_READER_COUNTER_H

#include <stdint.h>

/* The value of a counter, and how long the thread ran meanwhile (perf_event_open(2)). If there are
 * too few counters they take turns, and `running_ns` is less than `enabled_ns`. */
struct lt_count {
    uint64_t value;
    uint64_t enabled_ns;
    uint64_t running_ns;
};

/* Counts an event of one thread, given by its type and config as in struct perf_event_attr. With
 * `user_only` the work of the kernel for the thread does not count. Returns a descriptor, or the
 * negative errno. */
int lt_open_counter(uint32_t type, uint64_t config, int32_t tid, int user_only);

/* Returns 0 if nothing can be read. */
int lt_read_counter(int fd, struct lt_count *count);

#endif
