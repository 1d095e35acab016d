/* The profiles that a program makes of its own code, in the shared memory. A part of abi.h: its
 * rules hold here, too. */
#ifndef LOCKTOP_ABI_PROFILES_H
#define LOCKTOP_ABI_PROFILES_H

#include <stdint.h>

enum {
    LT_PROFILES = 256,      /* profiles at one time */
    LT_PROFILE_REGIONS = 8, /* regions of one profile */
    LT_PROFILE_NAME = 48,
    LT_PROFILE_MODULE = 200,
    LT_PROFILE_BUCKETS = 1 << 22 /* buckets of one profile */
};

enum lt_profile_state {
    LT_PROFILE_FREE = 0,    /* the entry waits for its next profile */
    LT_PROFILE_STOPPED = 1, /* created, or stopped by the program */
    LT_PROFILE_RUNNING = 2,
    LT_PROFILE_UNLOADED = 3,  /* dlclose() removed code of a region */
    LT_PROFILE_TAKEN_OVER = 4 /* the program took the signal over */
};

/* In the order of enum locktop_profile_source (locktop.h). */
enum lt_profile_source {
    LT_SOURCE_TIMER = 0,
    LT_SOURCE_TASK_CLOCK = 1,
    LT_SOURCE_CONTEXT_SWITCHES = 2,
    LT_SOURCE_PAGE_FAULTS = 3,
    LT_SOURCE_CYCLES = 4,
    LT_SOURCE_INSTRUCTIONS = 5,
    LT_SOURCE_BRANCHES = 6,
    LT_SOURCE_BRANCH_MISSES = 7,
    LT_SOURCE_CACHE_MISSES = 8,
    LT_SOURCES = 9
};

/* A range of code. Its buckets follow those of the region before. The last bucket may reach beyond
 * the end. */
struct lt_profile_region {
    uint64_t start;      /* address */
    uint64_t size;       /* bytes */
    uint64_t offset;     /* of the start in the file `module` */
    uint8_t module[200]; /* LT_PROFILE_MODULE; the path; empty: code made at run time */
};

/* One profile. `seq` is odd while the program makes or removes the profile. Threads add to the
 * counts with atomic operations. */
struct lt_profile {
    uint32_t seq;
    uint32_t state;  /* enum lt_profile_state */
    uint32_t source; /* enum lt_profile_source */
    uint32_t all_threads;
    uint64_t interval; /* ns or events between two samples */
    uint32_t bucket_size;
    uint32_t region_count;
    uint64_t counts;                    /* offset of `bucket_count` uint64_t */
    uint64_t bucket_count;              /* of all regions */
    uint64_t samples;                   /* in all buckets */
    uint64_t elsewhere;                 /* samples of code outside the regions */
    uint64_t lost;                      /* samples whose place is not known */
    uint32_t threads;                   /* threads that are sampled now */
    uint32_t left_out;                  /* threads that could not be sampled */
    uint64_t ran_ticks;                 /* ticks between earlier starts and stops */
    uint64_t started;                   /* ticks of the last start; 0: not running */
    uint8_t name[48];                   /* LT_PROFILE_NAME; ends with a zero */
    struct lt_profile_region region[8]; /* LT_PROFILE_REGIONS of them */
};

#endif
