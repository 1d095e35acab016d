/* The samples that the kernel writes for one event of one thread (perf_event_open(2)). */
#ifndef LOCKTOP_PERF_RING_H
#define LOCKTOP_PERF_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "profiling/profile.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

struct perf_ring {
    void *page;    /* NULL: no ring */
    uint64_t size; /* bytes of the samples' part */
};

/* Opens the event of a profile's source for a thread; LOCKTOP_OK, or the code that says why not. */
int perf_ring_open(struct perf_ring *ring, const struct profile *profile, uint32_t tid);

/* Counts what the kernel has written since. One caller at a time; async-signal-safe. */
void perf_ring_drain(const struct perf_ring *ring, const struct profile *profile);

/* Ends the event. */
void perf_ring_close(struct perf_ring *ring);

#pragma GCC visibility pop

#endif
