/* Picks the buckets of a profile that have samples. */
#include "reader.h"

static unsigned level_of(uint64_t count)
{
    return count ? 64u - (unsigned)__builtin_clzll(count) : 0;
}

uint32_t lt_pick_buckets(const uint64_t *counts, uint32_t count, struct lt_bucket *picked,
                         uint32_t room, uint32_t *left_out)
{
    uint32_t by_level[65] = {0}, kept = 0, written = 0;
    unsigned least = 65;

    for (uint32_t i = 0; i < count; i++)
        by_level[level_of(counts[i])]++;
    while (least > 1 && kept + by_level[least - 1] <= room)
        kept += by_level[--least];
    *left_out = 0;
    for (uint32_t i = 0; i < count; i++) {
        unsigned level = level_of(counts[i]);

        if (level >= least)
            picked[written++] = (struct lt_bucket){i, counts[i]};
        else
            *left_out += level > 0;
    }
    return written;
}
