/* The start routines of threads that the library does not watch, until those threads run. */
#include "profiling/thread_starts.h"

#include <stdbool.h>
#include <string.h>

enum { STARTS_MAX = 256 };

static struct profiled_start starts[STARTS_MAX];

struct profiled_start *thread_start_keep(void *(*start_routine)(void *), void *argument)
{
    for (uint32_t i = 0; i < STARTS_MAX; i++) {
        uint32_t expected = 0;
        if (!__atomic_compare_exchange_n(&starts[i].is_used, &expected, 1, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
            continue;
        starts[i].start = start_routine;
        starts[i].argument = argument;
        return &starts[i];
    }
    return NULL;
}

struct profiled_start thread_start_take(struct profiled_start *kept)
{
    struct profiled_start copy = *kept;
    __atomic_store_n(&kept->is_used, 0, __ATOMIC_RELEASE);
    return copy;
}

void thread_starts_forget(void)
{
    memset(starts, 0, sizeof starts);
}
