/* Runs a simulated program. Its threads repeat operations, and share locks and CPUs. cffi reads
 * this file as it reads reader.h.
 *
 * Times are nanoseconds. One below 0 counts as 0, and one above 2^56 (two years) as 2^56. The same
 * holds for units. */
#ifndef LOCKTOP_SIMULATOR_H
#define LOCKTOP_SIMULATOR_H

#include <stdint.h>

/* The types of operation, as in Do of collector/analysis/whatif/simulated_program.py. */
enum lt_operation_type {
    LT_COMPUTE = 0,
    LT_SLEEP = 1,
    LT_TAKE = 2,
    LT_SHARE = 3,
    LT_RELEASE = 4,
    LT_WAIT = 5,
    LT_POST = 6,
    LT_MEET = 7,
    LT_ROUND = 8
};

/* How a lock behaves, as in LockType of the same file. */
enum lt_lock_type { LT_MUTEX = 0, LT_RWLOCK = 1, LT_UNITS = 2, LT_BARRIER = 3 };

struct lt_operation {
    int64_t type; /* enum lt_operation_type */
    int64_t lock; /* index */
    int64_t amount;
};

/* A thread that repeats its operations for ever. Those of the first thread come first. */
struct lt_thread_model {
    int64_t operations; /* at least one */
    int64_t start;      /* the operation with which it begins */
    int64_t is_other;   /* the scheduler gives it a CPU before any other thread */
};

struct lt_lock_model {
    int64_t type;  /* enum lt_lock_type */
    int64_t units; /* at the begin; of a barrier: the threads that meet */
};

struct lt_program {
    const struct lt_operation *operations;
    const struct lt_thread_model *threads;
    const struct lt_lock_model *locks;
    const int64_t *wakes_ns; /* from a call that wakes a thread until this is ready to run */
    uint64_t operation_count;
    uint64_t thread_count;
    uint64_t lock_count;
    uint64_t wake_count; /* equally likely cases; none: no time */
    uint64_t cpus;       /* 0 counts as 1 */
    uint64_t seed;
};

/* The counts after the warm-up. The caller owns the arrays. */
struct lt_outcome {
    uint64_t *rounds;  /* by thread */
    uint64_t *wait_ns; /* by lock */
    uint64_t stopped;  /* threads that only waited */
    uint64_t cpu_ns;   /* of all threads */
    int64_t span_ns;   /* shorter than wanted after too many events */
};

/* Simulates `warm_up_ns`, then counts for `span_ns`. A change may make much more happen in the same
 * time. So a simulation also ends after some number of events, and never takes seconds. Unlike the
 * functions of reader.h, this one allocates. Returns 0, -EINVAL for a program that is damaged, or
 * -ENOMEM. */
int lt_simulate(const struct lt_program *program, int64_t warm_up_ns, int64_t span_ns,
                struct lt_outcome *outcome);

#endif
