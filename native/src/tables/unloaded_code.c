/* The list of the code that dlclose() unloaded. */
#include "tables/unloaded_code.h"

#include <stdbool.h>

#include "locktop/abi.h"
#include "shm/segment.h"

/* Programs load and unload one library again and again, mostly at one address. */
static bool is_listed(const struct lt_unloaded_code *unloaded, uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < LT_UNLOADED_RANGES; i++) {
        const struct lt_code_range *range = &unloaded->ranges[i];
        uint64_t until = __atomic_load_n(&range->end, __ATOMIC_ACQUIRE);
        if (end <= until && start >= range->start)
            return true;
    }
    return false;
}

void unloaded_code_note(uint64_t start, uint64_t end)
{
    struct lt_unloaded_code *unloaded = &lt_shm->unloaded;
    if (is_listed(unloaded, start, end))
        return;
    uint32_t index = __atomic_fetch_add(&unloaded->count, 1, __ATOMIC_ACQ_REL);
    if (index >= LT_UNLOADED_RANGES)
        return;
    unloaded->ranges[index].start = start;
    __atomic_store_n(&unloaded->ranges[index].end, end, __ATOMIC_RELEASE);
}
