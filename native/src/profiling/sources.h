/* The sources of samples: a timer, and events of the kernel and of the processor. */
#ifndef LOCKTOP_SOURCES_H
#define LOCKTOP_SOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "locktop/abi.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* One source. Intervals are ns or events. */
struct profile_source {
    const char *name;
    const char *unit;
    uint64_t default_interval;
    uint64_t min_interval;
    uint64_t max_interval;
    uint32_t type; /* of perf_event_attr */
    uint64_t config;
    bool in_kernel; /* the samples come from kernel code: the user's instruction is a register */
};

/* Returns the source of this number, NULL if there is none. */
const struct profile_source *profile_source(int number);

/* Returns the time between two ticks of the kernel, ns; 0 if it is not known. */
uint64_t profile_tick_ns(void);

/* Returns the smallest interval of a source. The timer's is a tick of the kernel, because no timer
 * of CPU time is faster. */
uint64_t profile_source_min(int number);

/* Returns LOCKTOP_OK, or the code that says why the source cannot be used here. */
int profile_source_status(int number);

/* Opens the event of a source for a thread: its descriptor, or -errno. */
int profile_source_open(int number, uint64_t interval, uint32_t tid);

#pragma GCC visibility pop

#endif
