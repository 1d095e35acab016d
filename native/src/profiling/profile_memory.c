/* The profiles in the shared memory. The arena takes no range back. So an entry keeps its range for
 * the next profile, and a range has a power of two of counts. */
#include "profiling/profile_memory.h"

#include <string.h>

#include "shm/arena.h"
#include "shm/array.h"
#include "shm/segment.h"

enum { FIRST = 4, LEAST_COUNTS = 512 /* a page */ };

/* The range of each entry, by index: offset and number of counts. */
static struct range {
    uint64_t offset, count;
} ranges[LT_PROFILES];

void profile_memory_init(void)
{
    array_init(&lt_shm->profiles, sizeof(struct lt_profile), FIRST);
}

void profile_memory_forget(void)
{
    memset(ranges, 0, sizeof ranges);
}

static uint32_t index_of(const struct lt_profile *entry)
{
    uint32_t index = 0;
    while (array_at(&lt_shm->profiles, index) != (const void *)entry)
        index++;
    return index;
}

/* Makes room for so many counts, and keeps the first `kept` ones. */
static bool range_grow(struct range *range, uint64_t count, uint64_t kept)
{
    if (range->count >= count)
        return true;
    uint64_t size = LEAST_COUNTS;
    while (size < count)
        size *= 2;
    uint64_t offset = shm_alloc(size * sizeof(uint64_t));
    if (!offset)
        return false;
    if (range->offset) {
        memcpy(shm_ptr(offset), shm_ptr(range->offset), kept * sizeof(uint64_t));
        shm_give_back(range->offset, range->count * sizeof(uint64_t));
    }
    *range = (struct range){offset, size};
    return true;
}

/* Returns the free entry whose range fits best, else a new one. */
static struct lt_profile *entry_for(uint64_t count)
{
    struct lt_profile *best = NULL;
    uint64_t best_count = 0;
    uint32_t used = lt_shm->profiles.count;
    for (uint32_t i = 0; i < used; i++) {
        struct lt_profile *entry = array_at(&lt_shm->profiles, i);
        uint64_t has = ranges[i].count;
        if (entry->state != LT_PROFILE_FREE)
            continue;
        if (!best || (has >= count ? best_count < count || has < best_count : has > best_count)) {
            best = entry;
            best_count = has;
        }
    }
    if ((!best || best_count < count) && used < LT_PROFILES) {
        struct lt_profile *fresh = array_push(&lt_shm->profiles, &used);
        return fresh ? fresh : best;
    }
    return best;
}

static void write_entry(const struct profile *profile, struct lt_profile *entry, uint64_t offset)
{
    uint32_t seq = entry->seq | 1;
    __atomic_store_n(&entry->seq, seq, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    entry->state = profile->state;
    entry->source = (uint32_t)profile->source;
    entry->all_threads = profile->all_threads;
    entry->interval = profile->interval;
    entry->bucket_size = 1u << profile->bucket_shift;
    entry->region_count = profile->region_count;
    entry->counts = offset;
    entry->bucket_count = profile->bucket_count;
    memcpy(entry->name, profile->name, sizeof entry->name);
    memcpy(entry->region, profile->region, sizeof entry->region);
    __atomic_store_n(&entry->seq, seq + 1, __ATOMIC_RELEASE);
}

static struct lt_profile *entry_take(uint64_t count)
{
    struct lt_profile *entry = entry_for(count);
    if (entry) {
        entry->samples = entry->elsewhere = entry->lost = entry->ran_ticks = entry->started = 0;
        entry->threads = entry->left_out = 0;
        entry->bucket_count = 0;
    }
    return entry;
}

bool profile_share(struct profile *profile)
{
    struct lt_profile *entry =
        profile->shared ? profile->shared : entry_take(profile->bucket_count);
    if (!entry)
        return false;
    struct range *range = &ranges[index_of(entry)];
    uint64_t kept = entry->bucket_count;
    if (!range_grow(range, profile->bucket_count, kept))
        return false;
    profile->counts = shm_ptr(range->offset);
    memset(profile->counts + kept, 0, (profile->bucket_count - kept) * sizeof(uint64_t));
    if (!profile->shared || kept != profile->bucket_count)
        write_entry(profile, entry, range->offset);
    profile->shared = entry;
    return true;
}

void profile_publish_state(struct profile *profile, uint32_t state)
{
    __atomic_store_n(&profile->state, state, __ATOMIC_RELEASE);
    if (profile->shared)
        __atomic_store_n(&profile->shared->state, state, __ATOMIC_RELEASE);
}

void profile_unshare(struct profile *profile)
{
    struct lt_profile *entry = profile->shared;
    profile->shared = NULL;
    if (!entry)
        return;
    __atomic_store_n(&entry->seq, entry->seq | 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&entry->state, LT_PROFILE_FREE, __ATOMIC_RELEASE);
    __atomic_store_n(&entry->seq, entry->seq + 1, __ATOMIC_RELEASE);
}
