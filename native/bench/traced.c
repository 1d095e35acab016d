/* The function of `locktop-bench calls`. This file alone is built with -finstrument-functions. */
#include "traced.h"

/* The least that a function can be, with a begin and an end. */
static __attribute__((noinline)) void traced(void)
{
    __asm__ volatile("");
}

__attribute__((no_instrument_function)) void traced_batch(unsigned n)
{
    for (; n; n--)
        traced();
}
