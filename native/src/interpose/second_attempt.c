/* Decides whether threads make a second attempt, and how long an attempt takes. */
#include "interpose/second_attempt.h"

#include "base/sys.h"

struct attempt_times attempt_near, attempt_far;
__thread struct attempts attempts;

/* Whether the program may use two CPUs. A mask that is too short means that there are many. */
static bool has_two_cpus(void)
{
    enum { WORDS = 128 / sizeof(uint64_t) };
    uint64_t mask[WORDS] = {0};
    int cpus = 0;
    if (sys_call3(SYS_sched_getaffinity, 0, sizeof mask, (long)mask) < 0)
        return true;
    for (int i = 0; i < WORDS; i++)
        cpus += __builtin_popcountll(mask[i]);
    return cpus >= 2;
}

void second_attempt_init(void)
{
    uint64_t unit = 1ull << lt_clock.wait_shift; /* some 25 ns */
    if (!has_two_cpus())
        return;
    attempt_near = (struct attempt_times){unit, 16 * unit};
    attempt_far = (struct attempt_times){32 * unit, 64 * unit};
}
