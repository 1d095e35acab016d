/* Tests of claims. The check of an old claim leaves the floating-point state alone. */
#include <string.h>

#include "base/clock.h"
#include "base/sys.h"
#include "base/tls.h"
#include "check.h"
#include "shm/control.h"
#include "shm/segment.h"

static void ticks_of_a_second_are_exact(void)
{
    uint64_t now = lt_now(), second = ticks_of_second(now + 1);
    CHECK(second == 0 || second > MIN_TICKS_OF_SECOND);
    lt_shm->clock0_ns = lt_clock_gettime_ns(CLOCK_MONOTONIC) - 3000000000;
    lt_shm->clock0_ticks = now - 7;
    CHECK(ticks_of_second(now) <= 2); /* 7 ticks in 3 seconds and a little more */
    lt_shm->clock0_ticks = now - 9000000000;
    second = ticks_of_second(now);
    CHECK(second > 1000000 && second <= 3000000000);
}

#if defined(__x86_64__)
/* The program may let the processor trap an inexact result. */
static void an_old_claim_needs_no_floating_point(void)
{
    uint64_t now = lt_now();
    unsigned before = __builtin_ia32_stmxcsr();
    lt_shm->clock0_ns = lt_clock_gettime_ns(CLOCK_MONOTONIC) - 3000000001;
    lt_shm->clock0_ticks = now - 9000000007;
    lt_control.page.claim_pid = 1;
    lt_control.page.claim_ticks = 1;
    __builtin_ia32_ldmxcsr(0x1f80 & ~0x1000u); /* traps on inexact results */
    control_check_claim(now);
    unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    CHECK_EQUAL(after & 0x3f, 0);
    CHECK_EQUAL(lt_control.page.claim_pid, 0);
}
#endif

int main(void)
{
    CHECK(watched());
    ticks_of_a_second_are_exact();
#if defined(__x86_64__)
    an_old_claim_needs_no_floating_point();
#endif
    return 0;
}
