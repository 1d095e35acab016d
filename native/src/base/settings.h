/* What the environment asks for: the LOCKTOP_* variables, described in docs/environment.md. */
#ifndef LOCKTOP_SETTINGS_H
#define LOCKTOP_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "locktop/abi.h"

enum { SHM_PATH_MAX = 512 };
enum { RING_RECORDS = 256, RING_RECORDS_MIN = 16, RING_RECORDS_MAX = 1 << 20 };

struct settings {
    char directory[SHM_PATH_MAX / 2];
    uint32_t level;
    uint32_t ring_records; /* a power of two */
    uint64_t memory;       /* bytes that the file may take; 0: as many as there are */
    const char
        *children; /* "all", "none", or names with commas between; of use at the start only */
    enum { ORDER_NONE, ORDER_NOTED, ORDER_COOKIES } order; /* in which locks are taken (order.h) */
    bool any_tracer; /* where Yama asks, each process of its user may trace this one */
    bool quiet;
};

#pragma GCC visibility push(hidden)
extern struct settings lt_settings;
#pragma GCC visibility pop

/* Reads them. A value that cannot be is as none; `wrong` then says which, and why, for a person. */
void settings_read(char *const *environ, char *wrong, size_t size);

#endif
