/* The arena hands out ranges of the shared file, each once and for all. */
#include "shm/arena.h"

#include <stddef.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "shm/segment.h"

enum {
    SEAL_ROOM = 4 << 20, /* reserved for the time after the program confined itself */
    CACHE_LINE = 64,
    SPARE_PARTS = 4,    /* shm_alloc_spare(): of so many parts of the room, one is taken */
    RESERVED_PARTS = 4, /* the same of the limit: one is kept free */
    REFUSALS_BEFORE_RETRY = 1024
};

static uint64_t seal_from, seal_end; /* all that the arena hands out between these is reserved */
static uint64_t last_used; /* end of the used part of the last room, the first part of the arena */
static uint64_t too_large; /* bytes: the smallest request that the system refused */

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

void arena_init(struct lt_header *header, uint64_t limit)
{
    header->used = LT_ARENA_OFFSET + ARENA_LAST_ROOM;
    header->backed = ARENA_FIRST_BACKED;
    header->limit = limit;
    last_used = LT_ARENA_OFFSET;
    too_large = UINT64_MAX;
}

/* Makes everything below `end` safe to touch. Several threads may do this at once: reserving is
 * idempotent, and `backed` rises only after the pages are there. */
static bool arena_back(uint64_t end)
{
    for (;;) {
        uint64_t backed = __atomic_load_n(&lt_shm->backed, __ATOMIC_ACQUIRE);
        if (end <= backed)
            return true;
        if (shm_is_sealed())
            return false;
        unsigned segment = shm_segment_of(backed);
        uint64_t stop = shm_segment_start(segment + 1);
        uint64_t wanted = round_up(end, ARENA_STEP);
        if (wanted > stop)
            wanted = stop;
        if (wanted > lt_shm->limit)
            wanted = lt_shm->limit / LT_PAGE * LT_PAGE;
        if (wanted <= backed || (segment && !shm_segment_map(segment)) ||
            !shm_pages_reserve(backed, wanted))
            return false;
        __atomic_compare_exchange_n(&lt_shm->backed, &backed, wanted, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE);
    }
}

/* While the file system is full each attempt is a failing system call, which reserves all that is
 * left. So only one in many requests tries; for a table, one in as many as the table would have
 * entries. A request smaller than the refused one may still find room. */
static bool may_try(uint64_t size)
{
    uint64_t refused = __atomic_load_n(&lt_shm->refused, __ATOMIC_RELAXED);
    return size < __atomic_load_n(&too_large, __ATOMIC_RELAXED) ||
           refused % (REFUSALS_BEFORE_RETRY + size / CACHE_LINE) == 0;
}

static bool note_attempt(uint64_t size, bool success)
{
    uint64_t smallest = __atomic_load_n(&too_large, __ATOMIC_RELAXED);
    if (success && size >= smallest)
        __atomic_store_n(&too_large, UINT64_MAX, __ATOMIC_RELAXED); /* other files gave room back */
    else if (!success && size < smallest)
        __atomic_store_n(&too_large, size, __ATOMIC_RELAXED);
    return success;
}

static bool refuse(void)
{
    __atomic_fetch_add(&lt_shm->refused, 1, __ATOMIC_RELAXED);
    __atomic_fetch_or(&lt_shm->notes, LT_NOTE_NO_ROOM, __ATOMIC_RELAXED);
    return false;
}

static bool arena_room(uint64_t end)
{
    uint64_t backed = __atomic_load_n(&lt_shm->backed, __ATOMIC_ACQUIRE);
    if (end <= backed)
        return true;
    uint64_t size = round_up(end - backed, ARENA_STEP);
    if (end > lt_shm->limit || !may_try(size))
        return refuse();
    return note_attempt(size, arena_back(end)) || refuse();
}

bool shm_seal(void)
{
    bool is_ours = lt_shm && !shm_is_of_parent();
    if (is_ours && sys_getpid() != lt_shm->pid)
        return false; /* a vfork child confines itself, not this process */
    if (is_ours) {
        seal_from = __atomic_load_n(&lt_shm->used, __ATOMIC_RELAXED);
        arena_back(seal_from + SEAL_ROOM);
        seal_end = __atomic_load_n(&lt_shm->backed, __ATOMIC_RELAXED);
    }
    shm_set_sealed(true);
    return true;
}

void shm_unseal(void)
{
    shm_set_sealed(false);
}

/* The first range that lies behind `used`; 0 if there is none. */
static uint64_t range_after(uint64_t used, uint64_t size, uint64_t alignment)
{
    uint64_t start = round_up(used, alignment);
    unsigned segment = shm_segment_of(start);
    while (start + size > shm_segment_start(segment + 1)) {
        /* A segment is mapped by the one before, so none may be left out. */
        if (++segment >= SHM_SEGMENTS || !shm_segment_map(segment))
            return 0;
        start = shm_segment_start(segment);
    }
    return segment < SHM_SEGMENTS && (!segment || shm_segment_map(segment)) ? start : 0;
}

static uint64_t alloc(uint64_t size, uint64_t alignment)
{
    if (!lt_shm || shm_is_of_parent())
        return 0;
    uint64_t used = __atomic_load_n(&lt_shm->used, __ATOMIC_RELAXED);
    for (;;) {
        uint64_t start = range_after(used, size, alignment);
        if (!start || !arena_room(start + size))
            return 0;
        if (__atomic_compare_exchange_n(&lt_shm->used, &used, start + size, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return start;
    }
}

/* Lets `backed` rise from `start`, below which all is handed out, over a range whose owner reserves
 * the pages. The range must be handed out before: another thread might get it otherwise, and take
 * its pages for reserved. */
static bool arena_skip(uint64_t start, uint64_t end)
{
    for (;;) {
        uint64_t backed = __atomic_load_n(&lt_shm->backed, __ATOMIC_ACQUIRE);
        if (backed >= end)
            return true;
        if (backed < start && !arena_back(start))
            return refuse();
        if (backed >= start)
            __atomic_compare_exchange_n(&lt_shm->backed, &backed, end, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE);
    }
}

/* The rest of the segment before is not reserved either. */
uint64_t shm_alloc_sparse(uint64_t size)
{
    if (!lt_shm || shm_is_of_parent())
        return 0;
    uint64_t start, used = __atomic_load_n(&lt_shm->used, __ATOMIC_RELAXED);
    size = round_up(size, LT_PAGE);
    do {
        start = range_after(used, size, LT_PAGE);
        if (!start || start + size > lt_shm->limit) {
            refuse();
            return 0;
        }
    } while (!__atomic_compare_exchange_n(&lt_shm->used, &used, start + size, false,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return arena_skip(used, start + size) ? start : 0;
}

uint64_t shm_alloc(uint64_t size)
{
    return alloc(size, CACHE_LINE);
}

uint64_t shm_alloc_spare(uint64_t size)
{
    if (!lt_shm || __atomic_load_n(&too_large, __ATOMIC_RELAXED) != UINT64_MAX)
        return 0;
    uint64_t used = __atomic_load_n(&lt_shm->used, __ATOMIC_RELAXED);
    bool leaves_room = used + SPARE_PARTS * size <= lt_shm->limit - lt_shm->limit / RESERVED_PARTS;
    return leaves_room ? shm_alloc(size) : 0;
}

uint64_t shm_alloc_last(uint64_t size)
{
    uint64_t offset = shm_alloc(size);
    if (offset || !lt_shm || shm_is_of_parent())
        return offset;
    uint64_t used = __atomic_load_n(&last_used, __ATOMIC_RELAXED);
    do {
        if (size > LT_ARENA_OFFSET + ARENA_LAST_ROOM - used)
            return 0;
    } while (!__atomic_compare_exchange_n(&last_used, &used, used + round_up(size, CACHE_LINE),
                                          false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return used;
}

/* A signal handler may let a table grow, and so give its pages back. The hook that the signal
 * interrupted may still write to that table. This does no harm: the page comes back, and nobody
 * else owns it. */
void shm_give_back(uint64_t offset, uint64_t size)
{
    if (size >= LT_PAGE && !shm_is_sealed() && !shm_is_of_parent())
        sys_call3(SYS_madvise, (long)shm_ptr(offset), (long)size, MADV_REMOVE);
}

uint64_t shm_alloc_reusable(uint64_t size)
{
    return size > ARENA_STEP ? shm_alloc_sparse(size)
                             : alloc(size, size < LT_PAGE ? CACHE_LINE : LT_PAGE);
}

/* `alone`: no other range uses any of these pages yet. */
static bool reserve(uint64_t offset, uint64_t size, bool alone)
{
    if (!lt_shm || shm_is_of_parent())
        return false;
    if (shm_is_sealed())
        return (offset >= seal_from && offset + size <= seal_end) || refuse();
    if (size < LT_PAGE)
        return true;
    if (!may_try(size))
        return refuse();
    uint64_t from = offset / LT_PAGE * LT_PAGE, to = round_up(offset + size, LT_PAGE);
    if (note_attempt(size, shm_pages_reserve(from, to)))
        return true;
    if (alone)
        shm_give_back(offset, size);
    return refuse();
}

bool shm_reserve(uint64_t offset, uint64_t size)
{
    return reserve(offset, size, true);
}

bool shm_reserve_part(uint64_t offset, uint64_t size)
{
    return reserve(offset, size, false);
}
