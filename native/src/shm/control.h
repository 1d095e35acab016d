/* The level at which the library works, and readers' claims on it. */
#ifndef LOCKTOP_CONTROL_H
#define LOCKTOP_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/modes.h"
#include "locktop/abi.h"

/* Puts the file's control page in place, with the level that holds without a reader. False if it
 * cannot be mapped there. */
bool control_share(uint32_t level);

/* Puts a page of this process alone in its place. */
void control_own(uint32_t mode);

NOINLINE void control_claim_slow(uint64_t now);

/* Where the clock has been read: does the reader still renew its claim? */
static inline void control_check_claim(uint64_t now)
{
    if (UNLIKELY(lt_control.page.claim_pid))
        control_claim_slow(now);
}

#endif
