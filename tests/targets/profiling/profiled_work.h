/* Work of a known CPU time, and short forms of functions of locktop.h, for the programs here. */
#ifndef PROFILED_WORK_H
#define PROFILED_WORK_H

#include "../../../native/include/locktop.h"
#include "../target.h"

#define ADDRESS_OF(function) ((const void *)(uintptr_t)(function))

enum { BUCKETS_MAX = 1 << 16 };

static volatile unsigned long long total_work;
static uint64_t counts[BUCKETS_MAX];

static KEPT uint64_t cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Defines a function that works for some CPU time, nearly all of it in its own code. */
#define DEFINE_WORK(name)                                                                          \
    __attribute__((noinline, noclone)) LOCKTOP_SECTION(hot) uint64_t name(unsigned ms)             \
    {                                                                                              \
        uint64_t begin = cpu_ns(), end = begin + ms * 1000000ull;                                  \
        while (cpu_ns() < end)                                                                     \
            for (int i = 0; i < 100000; i++)                                                       \
                total_work += (unsigned)i;                                                         \
        return cpu_ns() - begin;                                                                   \
    }

/* Fails the program with the line of the code. */
static KEPT int profile_must(int result)
{
    if (result >= 0)
        return result;
    printf("{\"code\": %d, \"error\": \"%s\"}\n", result, locktop_profile_error(result));
    fflush(stdout);
    exit(0);
}

/* Reads a profile; the sum of its buckets from `first` to `end`. */
static KEPT uint64_t read_counts(int profile, struct locktop_profile_totals *totals, uint64_t first,
                                 uint64_t end)
{
    uint64_t sum = 0;
    profile_must(locktop_profile_read(profile, counts, BUCKETS_MAX, totals));
    for (uint64_t i = first; i < end && i < totals->buckets; i++)
        sum += counts[i];
    return sum;
}

#endif
