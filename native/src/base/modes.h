/* The mode of the process: (epoch << 8) | level. Every hook reads it first. */
#ifndef LOCKTOP_MODES_H
#define LOCKTOP_MODES_H

#include <stdbool.h>
#include <stdint.h>

#include "locktop/abi.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

#ifdef LT_NOP
enum { IS_NOP = 1 };
#else
enum { IS_NOP = 0 };
#endif

enum {
    LEVEL_MASK = 0xff,
    LEVEL_CHILD = 0xfe,      /* a forked child, whose first hook makes the child's own file */
    MODE_NEVER = 0xffffffff, /* equals no real mode: no block, or inside the library */
    MODE_CHILD = LEVEL_CHILD
};

/* The control page lies at an address that the linker knows. The file's page is mapped over this
 * one, which says "dormant" before and after. */
extern union control_page {
    struct lt_control page;
    uint8_t room[LT_PAGE];
} lt_control;

static inline uint32_t current_mode(void)
{
    return __atomic_load_n(&lt_control.page.mode, __ATOMIC_RELAXED);
}

/* Whether function calls are counted, with an epoch: lt_control.calls. */
static inline uint32_t current_calls(void)
{
    return __atomic_load_n(&lt_control.page.calls, __ATOMIC_RELAXED);
}

static inline uint32_t epoch_of(uint32_t mode)
{
    return mode >> 8;
}

static inline bool dormant(uint32_t mode)
{
    return (mode & LEVEL_MASK) == LT_LEVEL_DORMANT;
}

/* Whether a hook has nothing to do. The nop flavour never has: its cost is the price of being
 * interposed at all. */
static inline bool at_rest(uint32_t mode)
{
    return IS_NOP || dormant(mode);
}

#pragma GCC visibility pop

#endif
