/* Tells the traits of the kinds of lock, for the test that compares them with those of the tool. */
#include "reader.h"

#include "locktop/kind_sets.h"

#define TRAITS_OF(name, traits, bit) [LT_KIND_##name] = (traits),

_Static_assert((int)LT_KIND_END <= (int)LT_KINDS, "a kind that the arrays by kind do not have");

uint32_t lt_kind_traits(uint32_t kind)
{
    static const uint32_t traits[LT_KIND_END] = {LT_KIND_ROWS(TRAITS_OF, 0)};

    return kind < LT_KIND_END ? traits[kind] : 0;
}
