/* The kinds of lock that have a trait, as bit masks. The masks are constants, so a question reads
 * no memory. */
#ifndef LOCKTOP_KIND_SETS_H
#define LOCKTOP_KIND_SETS_H

#include <stdint.h>

#include "locktop/abi_kinds.h"

#define LT_KIND_IN_SET(name, traits, bit)  | ((((traits) & (bit)) != 0) << LT_KIND_##name)
#define LT_KIND_IN_LIST(name, traits, bit) | 1 << LT_KIND_##name

enum {
    LT_KINDS_LISTED = 0 LT_KIND_ROWS(LT_KIND_IN_LIST, 0),
    LT_KINDS_OF_CONTENTION = 0 LT_KIND_ROWS(LT_KIND_IN_SET, LT_TRAIT_CONTENTION),
    LT_KINDS_SIGNALLED = 0 LT_KIND_ROWS(LT_KIND_IN_SET, LT_TRAIT_SIGNALLED),
    LT_KINDS_USES_COUNTED = 0 LT_KIND_ROWS(LT_KIND_IN_SET, LT_TRAIT_USES_COUNTED),
    LT_KINDS_OF_EVENTS = 0 LT_KIND_ROWS(LT_KIND_IN_SET, LT_TRAIT_EVENT),
    LT_KINDS_INNER = 0 LT_KIND_ROWS(LT_KIND_IN_SET, LT_TRAIT_INNER),
    LT_KINDS_RESERVED = 0 LT_KIND_ROWS(LT_KIND_IN_SET, LT_TRAIT_RESERVED),
    LT_KINDS_COMPOSITE = 0 LT_KIND_ROWS(LT_KIND_IN_SET, LT_TRAIT_COMPOSITE),
    LT_KINDS_WITH_LIVES = 0 LT_KIND_ROWS(LT_KIND_IN_SET, LT_TRAIT_HAS_LIVES),
    LT_KINDS_WOKEN = 0 LT_KIND_ROWS(LT_KIND_IN_SET, LT_TRAIT_WOKEN),
    /* the counters of these have the time of the thread's own wait */
    LT_KINDS_TIMED_BY_WAKES = LT_KINDS_WOKEN & ~LT_KINDS_SIGNALLED
};

_Static_assert(LT_KINDS_LISTED == (1 << LT_KIND_END) - (1 << (LT_KIND_NONE + 1)),
               "a kind without a row in LT_KIND_ROWS");
_Static_assert((int)LT_KIND_END <= (int)LT_KIND_SHARED, "a kind that looks like LT_KIND_SHARED");

/* Whether `kind` is in a set. `kind` may come from memory that anybody wrote. */
static inline int lt_kind_is_in(uint32_t set, uint64_t kind)
{
    return kind < LT_KIND_END && (set >> kind & 1);
}

#endif
