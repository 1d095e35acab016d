/* The hooks of function calls. A program built with -finstrument-functions calls them at the begin
 * and the end of its functions. glibc has functions of the same names, which do nothing. */
#include <stdint.h>

#include "base/compiler.h"
#include "base/modes.h"
#include "calls/call_filter.h"
#include "calls/call_stack.h"
#include "interpose/real.h"

#define NOT_TRACED __attribute__((no_instrument_function))

/* Looks for the return address of the traced function, which lies above its other data. Most
 * functions have little data. */
static inline uint64_t find_return(const uint64_t *frame, uint64_t site)
{
    enum { WORDS = 32 };
    for (int i = 1; i < WORDS && site; i++)
        if (frame[i] == site)
            return (uint64_t)&frame[i];
    return (uint64_t)&frame[1];
}

/* The real functions do nothing, so they are called only if they are another profiler's. */

NOT_TRACED EXPORT void __cyg_profile_func_enter(void *function, void *site)
{
    if (UNLIKELY(real_call_hooks_matter))
        real___cyg_profile_func_enter(function, site);
    if (IS_NOP || (UNLIKELY(lt_call_filter.table) && !call_is_wanted((uint64_t)function)))
        return;
    struct lt_calls *calls = calls_ready(true);
    if (UNLIKELY(!calls))
        return;
    const uint64_t *frame = (const uint64_t *)__builtin_frame_address(0) + 1;
    const struct traced call = {(uint64_t)function, (uint64_t)site,
                                (uint64_t)__builtin_return_address(0), (uint64_t)frame,
                                find_return(frame, (uint64_t)site)};
    call_begins(calls, &call);
}

NOT_TRACED EXPORT void __cyg_profile_func_exit(void *function, void *site)
{
    if (UNLIKELY(real_call_hooks_matter))
        real___cyg_profile_func_exit(function, site);
    if (IS_NOP || (UNLIKELY(lt_call_filter.table) && !call_is_wanted((uint64_t)function)))
        return;
    struct lt_calls *calls = calls_ready(false);
    if (UNLIKELY(!calls))
        return;
    uint64_t now = lt_now();
    const uint64_t *frame = (const uint64_t *)__builtin_frame_address(0) + 1;
    const struct traced call = {(uint64_t)function, (uint64_t)site,
                                (uint64_t)__builtin_return_address(0), (uint64_t)frame, 0};
    call_ends(calls, &call, now);
}
