/* Reads the clock of the target, and pairs it with CLOCK_MONOTONIC. */
#include "reader.h"

#include <time.h>

static uint64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return monotonic_ns();
#endif
}

uint64_t lt_reader_ticks(uint32_t clock)
{
    return clock == LT_CLOCK_COUNTER ? counter() : monotonic_ns();
}

uint64_t lt_reader_clock_pair(uint32_t clock, uint64_t *ticks, uint64_t *ns)
{
    uint64_t narrowest = UINT64_MAX;

    /* An interrupt between the readings would spoil the pair: the closest of a few pairs is
     * kept. */
    for (int attempt = 0; attempt < 16; attempt++) {
        uint64_t first = monotonic_ns();
        uint64_t between = lt_reader_ticks(clock);
        uint64_t second = monotonic_ns();

        if (second - first < narrowest) {
            narrowest = second - first;
            *ticks = between;
            *ns = first + (second - first) / 2;
        }
    }
    return narrowest;
}
