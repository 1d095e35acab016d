/* The sources of samples, and perf_event_open(2). */
#include "profiling/sources.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <locktop.h>
#include <string.h>
#include <time.h>

#include "base/sys.h"

enum { MS = 1000000, SECOND = 1000000000, PERF_REG_OF_IP_X86 = 8, PERF_REG_OF_PC_ARM64 = 32 };

#define SOFTWARE(event) .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_##event
#define HARDWARE(event) .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_##event

/* The smallest intervals of the clocks keep the slow-down under 2 %. A sample of the timer takes 4
 * microseconds. On a virtual machine one of the task clock takes up to 14. The other sources have
 * about as many samples a second. */
static const struct profile_source sources[LT_SOURCES] = {
    [LT_SOURCE_TIMER] = {"timer", "ns", 10 * MS, MS, SECOND, 0, 0, false},
    [LT_SOURCE_TASK_CLOCK] = {"task clock", "ns", 2 * MS, MS, SECOND, SOFTWARE(TASK_CLOCK)},
    [LT_SOURCE_CONTEXT_SWITCHES] = {"context switches", "events", 1, 1, MS,
                                    SOFTWARE(CONTEXT_SWITCHES), .in_kernel = true},
    [LT_SOURCE_PAGE_FAULTS] = {"page faults", "events", 1, 1, MS, SOFTWARE(PAGE_FAULTS)},
    [LT_SOURCE_CYCLES] = {"cycles", "events", 5 * MS, 2 * MS, 10ull * SECOND, HARDWARE(CPU_CYCLES)},
    [LT_SOURCE_INSTRUCTIONS] = {"instructions", "events", 5 * MS, 2 * MS, 10ull * SECOND,
                                HARDWARE(INSTRUCTIONS)},
    [LT_SOURCE_BRANCHES] = {"branch instructions", "events", MS, MS / 2, 10ull * SECOND,
                            HARDWARE(BRANCH_INSTRUCTIONS)},
    [LT_SOURCE_BRANCH_MISSES] = {"branch misses", "events", MS / 50, MS / 100, SECOND,
                                 HARDWARE(BRANCH_MISSES)},
    [LT_SOURCE_CACHE_MISSES] = {"cache misses", "events", MS / 50, MS / 100, SECOND,
                                HARDWARE(CACHE_MISSES)},
};

const struct profile_source *profile_source(int number)
{
    return number >= 0 && number < LT_SOURCES ? &sources[number] : NULL;
}

uint64_t profile_tick_ns(void)
{
    struct timespec tick;
    return clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0 ? (uint64_t)tick.tv_nsec : 0;
}

uint64_t profile_source_min(int number)
{
    uint64_t least = sources[number].min_interval;
    uint64_t tick = number == LT_SOURCE_TIMER ? profile_tick_ns() : 0;
    return tick > least ? tick : least;
}

int profile_source_open(int number, uint64_t interval, uint32_t tid)
{
    const struct profile_source *source = &sources[number];
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.type = source->type;
    attributes.config = source->config;
    attributes.sample_period = interval;
    attributes.exclude_kernel = !source->in_kernel;
    attributes.exclude_hv = 1;
    attributes.sample_type = source->in_kernel ? PERF_SAMPLE_REGS_USER : PERF_SAMPLE_IP;
#if defined(__x86_64__)
    attributes.sample_regs_user = source->in_kernel ? 1ull << PERF_REG_OF_IP_X86 : 0;
#else
    attributes.sample_regs_user = source->in_kernel ? 1ull << PERF_REG_OF_PC_ARM64 : 0;
#endif
    return (int)sys_call6(SYS_perf_event_open, (long)&attributes, (long)tid, -1, -1,
                          PERF_FLAG_FD_CLOEXEC, 0);
}

int profile_source_status(int number)
{
    if (number == LT_SOURCE_TIMER)
        return LOCKTOP_OK;
    int fd = profile_source_open(number, sources[number].max_interval, 0);
    if (fd >= 0) {
        sys_call3(SYS_close, fd, 0, 0);
        return LOCKTOP_OK;
    }
    return fd == -EACCES || fd == -EPERM                     ? LOCKTOP_NOT_PERMITTED
           : fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM ? LOCKTOP_LIMIT
                                                             : LOCKTOP_NOT_ON_THIS_MACHINE;
}
