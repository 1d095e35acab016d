/* The table of call stacks: it keeps each stack once, under an id. */
#include "tables/stack_table.h"

#include <string.h>

#include "shm/arena.h"

enum { BUCKET_BITS = 12 };

int stack_table_init(void)
{
    lt_shm->stack_buckets = shm_alloc(sizeof(uint32_t) << BUCKET_BITS);
    lt_shm->stack_bucket_count = 1u << BUCKET_BITS;
    return lt_shm->stack_buckets ? 0 : -1;
}

/* The number of frames. `depth` may carry the flag LT_STACK_CUT. */
static uint32_t count(uint32_t depth)
{
    return depth & ~(uint32_t)LT_STACK_CUT;
}

static uint64_t stack_hash(const uint64_t *frames, uint32_t depth)
{
    uint64_t hash = depth;
    for (uint32_t i = 0; i < count(depth); i++)
        hash = (hash ^ frames[i]) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
}

static uint32_t chain_find(const uint64_t *frames, uint32_t depth, uint64_t hash, uint32_t from,
                           uint32_t stop)
{
    for (uint32_t id = from; id && id != stop; id = stack_at(id)->next) {
        const struct lt_stack *stack = stack_at(id);
        if (stack->hash == hash && stack->depth == depth &&
            memcmp(stack_frames(stack), frames, count(depth) * sizeof *frames) == 0)
            return id;
    }
    return 0;
}

static uint32_t stack_new(const uint64_t *frames, uint32_t depth, uint64_t hash)
{
    uint64_t size = count(depth) * sizeof *frames;
    uint64_t offset = shm_alloc_last(sizeof(struct lt_stack) + size);
    if (!offset)
        return 0;
    struct lt_stack *stack = shm_ptr(offset);
    stack->hash = hash;
    stack->depth = depth;
    memcpy(stack + 1, frames, size);
    return (uint32_t)(offset / LT_STACK_UNIT);
}

uint32_t stack_id(const uint64_t *frames, uint32_t depth)
{
    uint64_t hash = stack_hash(frames, depth);
    uint32_t *bucket = (uint32_t *)shm_ptr(lt_shm->stack_buckets) + (hash >> (64 - BUCKET_BITS));
    uint32_t head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
    uint32_t id = chain_find(frames, depth, hash, head, 0);
    if (id || !(id = stack_new(frames, depth, hash)))
        return id;
    for (;;) {
        stack_at(id)->next = head;
        uint32_t seen = head;
        if (__atomic_compare_exchange_n(bucket, &head, id, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            __atomic_fetch_add(&lt_shm->stack_count, 1, __ATOMIC_RELAXED);
            return id;
        }
        uint32_t theirs = chain_find(frames, depth, hash, head, seen);
        if (theirs)
            return theirs; /* the new stack stays unused */
    }
}

uint32_t stack_id_of_site(const void *site)
{
    uint64_t frame = (uint64_t)(uintptr_t)site;
    return site ? stack_id(&frame, 1) : 0;
}

/* Flags the return addresses that lie in unloaded code. A thread compares the stack it has cached
 * with these very words, so it does not recognise the stack again. */
static void flag_unloaded(struct lt_stack *stack, uint64_t start, uint64_t end)
{
    uint64_t *frames = (uint64_t *)(stack + 1);
    for (uint32_t i = 0; i < count(stack->depth); i++)
        if (frames[i] >= start && frames[i] < end)
            __atomic_store_n(&frames[i], frames[i] | 1ull << LT_UNLOADED_BIT, __ATOMIC_RELEASE);
}

void stack_table_unloaded(uint64_t start, uint64_t end)
{
    const uint32_t *buckets = shm_ptr(lt_shm->stack_buckets);
    for (uint32_t i = 0; i < lt_shm->stack_bucket_count; i++)
        for (uint32_t id = __atomic_load_n(&buckets[i], __ATOMIC_ACQUIRE); id;
             id = stack_at(id)->next)
            flag_unloaded(stack_at(id), start, end);
    __atomic_fetch_add(&lt_shm->unloads, 1, __ATOMIC_RELEASE);
}
