/* Arrays of the shared file: each grows by chunks and never moves an element. */
#include "shm/array.h"
#include "shm/arena.h"
#include "shm/segment.h"

#include <stdbool.h>
#include <string.h>

static unsigned chunk_of(const struct lt_array *array, uint32_t index)
{
    return 63u - (unsigned)__builtin_clzll((uint64_t)index / array->first + 1);
}

static uint32_t chunk_start(const struct lt_array *array, unsigned chunk)
{
    return array->first * ((1u << chunk) - 1);
}

uint64_t array_offset(const struct lt_array *array, uint32_t index)
{
    if (index >= __atomic_load_n(&array->count, __ATOMIC_ACQUIRE))
        return 0;
    unsigned chunk = chunk_of(array, index);
    uint64_t offset = __atomic_load_n(&array->chunk[chunk], __ATOMIC_ACQUIRE);
    return offset + (uint64_t)(index - chunk_start(array, chunk)) * array->element_size;
}

void *array_at(const struct lt_array *array, uint32_t index)
{
    uint64_t offset = array_offset(array, index);
    return offset ? shm_ptr(offset) : NULL;
}

static uint64_t chunk_bytes(const struct lt_array *array, unsigned chunk)
{
    return ((uint64_t)array->first << chunk) * array->element_size;
}

/* The pages of a large chunk are reserved step by step, as elements are handed out. So no thread
 * waits for all of them. Of two threads that allocate one chunk, the second leaves its range
 * unused. */
static bool is_sparse(const struct lt_array *array, unsigned chunk)
{
    return chunk_bytes(array, chunk) > ARENA_STEP;
}

typedef uint64_t allocate(uint64_t size);

static uint64_t chunk_ensure(struct lt_array *array, unsigned chunk, allocate *alloc_dense)
{
    if (chunk >= LT_CHUNKS)
        return 0;
    uint64_t current = __atomic_load_n(&array->chunk[chunk], __ATOMIC_ACQUIRE);
    if (current)
        return current;
    uint64_t size = chunk_bytes(array, chunk);
    uint64_t offset = is_sparse(array, chunk) ? shm_alloc_sparse(size) : alloc_dense(size);
    if (!offset || __atomic_compare_exchange_n(&array->chunk[chunk], &current, offset, false,
                                               __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return offset;
    return current;
}

/* Makes elements from `index` on safe to touch. `index` is the first one that is not. */
static bool elements_back(struct lt_array *array, uint32_t index, allocate *alloc_dense)
{
    unsigned chunk = chunk_of(array, index);
    uint64_t offset = chunk_ensure(array, chunk, alloc_dense);
    if (!offset)
        return false;
    uint32_t first = chunk_start(array, chunk), end = first + (array->first << chunk);
    if (is_sparse(array, chunk)) {
        uint32_t step = ARENA_STEP / array->element_size;
        end = end - index > step ? index + step : end;
        uint64_t from = offset + (uint64_t)(index - first) * array->element_size;
        uint64_t to = offset + (uint64_t)(end - first) * array->element_size;
        if (!shm_reserve_part(from, to - from))
            return false;
    }
    uint32_t backed = __atomic_load_n(&array->backed, __ATOMIC_RELAXED);
    while (backed < end && !__atomic_compare_exchange_n(&array->backed, &backed, end, false,
                                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
    return true;
}

static void *push(struct lt_array *array, uint32_t *index, allocate *alloc_dense)
{
    uint32_t count = __atomic_load_n(&array->count, __ATOMIC_ACQUIRE);
    do {
        if (count == UINT32_MAX || (count >= __atomic_load_n(&array->backed, __ATOMIC_ACQUIRE) &&
                                    !elements_back(array, count, alloc_dense)))
            return NULL;
    } while (!__atomic_compare_exchange_n(&array->count, &count, count + 1, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    *index = count;
    return array_at(array, count);
}

void *array_push(struct lt_array *array, uint32_t *index)
{
    return push(array, index, shm_alloc);
}

void *array_push_last(struct lt_array *array, uint32_t *index)
{
    return push(array, index, shm_alloc_last);
}

void array_clear(struct lt_array *array)
{
    uint32_t left = array->count;
    for (unsigned chunk = 0; left; chunk++) {
        uint32_t count = array->first << chunk;
        if (count > left)
            count = left;
        memset(shm_ptr(array->chunk[chunk]), 0, (size_t)count * array->element_size);
        left -= count;
    }
    array->count = 0;
}
