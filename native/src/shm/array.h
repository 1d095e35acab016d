/* Arrays in the file that grow, and whose elements stay where they are: each chunk of elements has twice
 * the room of the one before. Any thread may add one at any time. */
#ifndef LOCKTOP_ARRAY_H
#define LOCKTOP_ARRAY_H

#include "locktop/abi.h"

#pragma GCC visibility push(hidden)

/* The element's file offset or address; 0 or NULL if there is none. */
uint64_t array_offset(const struct lt_array *array, uint32_t index);
void *array_at(const struct lt_array *array, uint32_t index);

/* A new element, all zero, and its index; NULL if there is no room. */
void *array_push(struct lt_array *array, uint32_t *index);

/* The same from shm_alloc_last(). */
void *array_push_last(struct lt_array *array, uint32_t *index);

/* Empties it; whoever may still look at an element finds it zero. */
void array_clear(struct lt_array *array);

static inline void array_init(struct lt_array *array, uint32_t element_size, uint32_t first)
{
    array->element_size = element_size;
    array->first = first;
}

#pragma GCC visibility pop

#endif
