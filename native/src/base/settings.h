/* The settings: the LOCKTOP_* variables of the environment, described in docs/environment.md. */
#ifndef LOCKTOP_SETTINGS_H
#define LOCKTOP_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "locktop/abi.h"

enum { SHM_PATH_MAX = 512, CALLS_MATCH_MAX = 1024 };
enum { RING_RECORDS = 256, RING_RECORDS_MIN = 16, RING_RECORDS_MAX = 1 << 20 };

struct settings {
    char directory[SHM_PATH_MAX / 2];
    uint32_t level;
    uint32_t ring_records; /* a power of two */
    uint64_t memory;       /* bytes that the file may take; 0: no limit */
    const char
        *children; /* "all", "none", or names with commas between; valid during the start only */
    /* how lock orders are noted (lock_order.h) */
    enum { ORDER_NONE, ORDER_NOTED, ORDER_COOKIES } order;
    bool calls;                        /* function calls are counted */
    uint32_t calls_depth;              /* open calls of a thread */
    uint32_t calls_min_us;             /* shorter calls are only counted */
    char calls_match[CALLS_MATCH_MAX]; /* names and prefixes with commas between; empty: all */
    bool any_tracer; /* where Yama restricts tracing, any process of the user may trace this one */
    bool quiet;
};

#pragma GCC visibility push(hidden)
extern struct settings lt_settings;
#pragma GCC visibility pop

/* Reads the settings. A variable with a value that is not allowed is ignored. `wrong` then says,
 * for a person, which variable it is and why. */
void settings_read(char *const *environ, char *wrong, size_t size);

#endif
