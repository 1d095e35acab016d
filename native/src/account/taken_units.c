/* A thread takes several units of a semaphore. */
#include "account/taken_units.h"

#include "tables/stack_table.h"

static const uint64_t more = 1ull << LT_TAKEN_MORE_BIT, by_stack = 1ull << LT_TAKEN_STACK_BIT;

/* The return address of the call. Of a unit that was free, no more of the stack is known. */
static uint64_t call_site(uint64_t taken_at)
{
    return taken_at & by_stack ? stack_frames(stack_at((uint32_t)taken_at))[0] : taken_at;
}

void taken_note_further(struct lt_lock_counters *counters, uint64_t taken_at)
{
    uint64_t first = counters->taken_at;
    if (!(first & more) && call_site(first) != call_site(taken_at))
        counters->taken_at = first | more;
}
