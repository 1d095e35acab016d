/* Finds the clock of the ticks and what one reading costs. */
#include "base/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

struct lt_clock_facts lt_clock = {LT_CLOCK_MONOTONIC, 0, 50, 5, 0};

enum { ROWS = 8, READINGS = 32 };

/* Invariant TSC: CPUID leaf 80000007H, EDX bit 8 (Intel SDM vol. 3, 18.17.1). The generic timer of
 * aarch64 is invariant by its architecture and states its own frequency. */
static int counter_is_invariant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8));
#else
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(lt_clock.hz));
    return 1;
#endif
}

/* Most counters of aarch64 are slow, and no tick of theirs can be spared. A counter that does not
 * state its frequency is a TSC, which is as fast as its processor. */
static uint32_t wait_shift(void)
{
    enum { NS_SHIFT = 5, COUNTER_SHIFT = 6, FAST_HZ = 500000000 };
    if (lt_clock.kind == LT_CLOCK_MONOTONIC)
        return NS_SHIFT;
    return lt_clock.hz && lt_clock.hz < FAST_HZ ? 0 : COUNTER_SHIFT;
}

void lt_clock_init(void)
{
    lt_clock.kind = counter_is_invariant() ? LT_CLOCK_COUNTER : LT_CLOCK_MONOTONIC;
    lt_clock.wait_shift = wait_shift();
    /* The cheapest of a few rows: an interrupt can only make a row dearer. This is a row and not
     * one reading. Two readings side by side may overlap in the processor and seem to cost
     * nothing. */
    uint64_t cheapest = UINT64_MAX;
    for (int row = 0; row < ROWS; row++) {
        uint64_t before = lt_now();
        for (int i = 0; i < READINGS; i++)
            lt_now();
        uint64_t cost = (lt_now() - before) / READINGS;
        if (cost < cheapest)
            cheapest = cost;
    }
    lt_clock.read_ticks = cheapest ? cheapest : 1;
}
