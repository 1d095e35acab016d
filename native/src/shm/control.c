/* The control page: maps it into place, and ends the claim of a reader that no longer renews it. */
#include "shm/control.h"

#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/sys.h"
#include "shm/segment.h"

bool control_share(uint32_t level, bool calls)
{
    struct lt_control *shared = shm_ptr(LT_CONTROL_OFFSET);
    shared->base_level = level;
    shared->mode = (1u << 8) | level;
    shared->calls = (1u << 8) | (calls ? LT_CALLS_ON : 0);
    /* mremap() with an old size of 0 makes a second mapping of the same page (mremap(2)). */
    long address = sys_call6(SYS_mremap, (long)shared, 0, LT_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                             (long)&lt_control, 0);
    if (address != (long)&lt_control) /* emulators do not know that form of mremap() */
        address = shm_map_at(&lt_control, LT_CONTROL_OFFSET, LT_PAGE);
    return address == (long)&lt_control;
}

void control_own(uint32_t mode)
{
    uint32_t calls = current_calls();
    long address = sys_call6(SYS_mmap, (long)&lt_control, LT_PAGE, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (address != (long)&lt_control)
        return; /* the page still belongs to another process */
    lt_control.page.calls = calls;
    __atomic_store_n(&lt_control.page.mode, mode, __ATOMIC_RELEASE);
}

uint64_t ticks_of_second(uint64_t now)
{
    uint64_t ns = lt_clock_gettime_ns(CLOCK_MONOTONIC) - lt_shm->clock0_ns;
    uint64_t ticks = now - lt_shm->clock0_ticks;
    /* no floating point: the program may trap inexact results */
    return ns < 1000000 ? 0 : (uint64_t)((unsigned __int128)ticks * 1000000000 / ns);
}

void control_claim_slow(uint64_t now)
{
    struct lt_control *control = &lt_control.page;
    uint64_t renewed = __atomic_load_n(&control->claim_ticks, __ATOMIC_RELAXED);
    /* divide only if the claim may be old */
    if (now < renewed || now - renewed < (uint64_t)MIN_TICKS_OF_SECOND * LT_CLAIM_SECONDS)
        return;
    uint64_t second = ticks_of_second(now);
    if (!second || now - renewed < second * LT_CLAIM_SECONDS)
        return;
    uint32_t pid = __atomic_exchange_n(&control->claim_pid, 0, __ATOMIC_ACQ_REL);
    if (!pid)
        return;
    uint32_t mode = __atomic_load_n(&control->mode, __ATOMIC_RELAXED);
    uint32_t base = control->base_level & LEVEL_MASK;
    uint32_t epoch = epoch_of(mode) + (base == LT_LEVEL_DORMANT || dormant(mode));
    uint32_t next = epoch << 8 | base;
    __atomic_compare_exchange_n(&control->mode, &mode, next, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
}
