/* The level at which the library works, and the claims of readers on the level. */
#ifndef LOCKTOP_CONTROL_H
#define LOCKTOP_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/modes.h"
#include "locktop/abi.h"

/* Puts the file's control page in place, with the level that holds without a reader. `calls`:
 * function calls are counted. False if the page cannot be mapped there. */
bool control_share(uint32_t level, bool calls);

/* Puts a private page of this process in the place of the control page. lt_control.calls stays,
 * so that a forked child's first function call makes the child's own file. */
void control_own(uint32_t mode);

/* Returns the ticks of a second, from the readings of both clocks since the watch began. Returns 0
 * in the first millisecond. The slowest clock in use has more than MIN_TICKS_OF_SECOND. */
enum { MIN_TICKS_OF_SECOND = 1000000 };
uint64_t ticks_of_second(uint64_t now);

NOINLINE void control_claim_slow(uint64_t now);

/* Called where a hook has read the clock: checks that the reader still renews its claim. */
static inline void control_check_claim(uint64_t now)
{
    if (UNLIKELY(lt_control.page.claim_pid))
        control_claim_slow(now);
}

#endif
