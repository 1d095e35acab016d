/* One profile: its regions and its counts. */
#ifndef LOCKTOP_PROFILE_H
#define LOCKTOP_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "locktop/abi.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* The process's own record of a profile. Only `state` changes while the profile runs, so the signal
 * handler needs no lock. */
struct profile {
    int number;     /* for the program; 0: the entry is free */
    uint32_t state; /* enum lt_profile_state */
    int source;
    bool all_threads;
    unsigned bucket_shift; /* log2 of the bucket's size */
    uint32_t region_count;
    uint64_t interval;
    uint64_t bucket_count;
    uint64_t ran_ns;     /* between earlier starts and stops */
    uint64_t started_ns; /* CLOCK_MONOTONIC, of the last start */
    uint64_t first_bucket[LT_PROFILE_REGIONS];
    struct lt_profile_region region[LT_PROFILE_REGIONS];
    uintptr_t base[LT_PROFILE_REGIONS]; /* of the module of each region; 0: code made at run time */
    char name[LT_PROFILE_NAME];
    struct lt_profile *shared; /* NULL in a forked child, until the child starts the profile */
    uint64_t *counts;          /* in the shared memory too */
};

static inline void profile_add(uint64_t *counter, uint64_t value)
{
    __atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
}

/* Counts a sample at an instruction. Async-signal-safe. */
static inline void profile_count(const struct profile *profile, uintptr_t instruction)
{
    for (uint32_t i = 0; i < profile->region_count; i++) {
        uint64_t offset = instruction - profile->region[i].start;
        if (offset < profile->region[i].size) {
            uint64_t bucket = profile->first_bucket[i] + (offset >> profile->bucket_shift);
            profile_add(&profile->counts[bucket], 1);
            profile_add(&profile->shared->samples, 1);
            return;
        }
    }
    profile_add(&profile->shared->elsewhere, 1);
}

static inline bool profile_is_running(const struct profile *profile)
{
    return __atomic_load_n(&profile->state, __ATOMIC_ACQUIRE) == LT_PROFILE_RUNNING;
}

#pragma GCC visibility pop

#endif
