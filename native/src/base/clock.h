/* The clock. A tick is one of the invariant cycle counter if there is one, else a nanosecond of
 * CLOCK_MONOTONIC. */
#ifndef LOCKTOP_CLOCK_H
#define LOCKTOP_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "locktop/abi.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

struct lt_clock_facts {
    _Alignas(64) uint32_t kind; /* enum lt_clock; the facts are in one line of the cache */
    uint64_t hz;                /* if the hardware states it, else 0 */
    uint64_t read_ticks;        /* what one reading costs */
    uint32_t wait_shift;        /* lt_header.wait_shift: units of some 25 ns */
    uint64_t long_wait;         /* ticks from which a wait is long; see account/long_waits.c */
};

extern struct lt_clock_facts lt_clock;

/* Finds out which clock to use and what a reading costs. */
void lt_clock_init(void);

static inline uint64_t lt_clock_gettime_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts); /* the vDSO: neither errno nor a cancellation point */
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t lt_counter(void)
{
#if defined(__x86_64__)
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return ((uint64_t)high << 32) | low;
#else
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#endif
}

static inline uint64_t lt_now(void)
{
    if (__builtin_expect(lt_clock.kind == LT_CLOCK_COUNTER, 1))
        return lt_counter();
    return lt_clock_gettime_ns(CLOCK_MONOTONIC);
}

/* The same, not before the loads before it have ended. */
static inline uint64_t lt_now_after_loads(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#else
    __asm__ volatile("isb" ::: "memory");
#endif
    return lt_now();
}

#pragma GCC visibility pop

#endif
