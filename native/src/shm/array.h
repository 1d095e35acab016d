/* Arrays of the shared file. An array grows, and its elements stay where they are. Each chunk of
 * elements has twice the room of the chunk before. Any thread may add an element at any time. */
#ifndef LOCKTOP_ARRAY_H
#define LOCKTOP_ARRAY_H

#include "locktop/abi.h"

#pragma GCC visibility push(hidden)

/* The file offset or the address of an element; 0 or NULL if there is no such element. */
uint64_t array_offset(const struct lt_array *array, uint32_t index);
void *array_at(const struct lt_array *array, uint32_t index);

/* Adds an element, all zero, and returns it and its index; NULL if there is no room. */
void *array_push(struct lt_array *array, uint32_t *index);

/* The same from shm_alloc_last(). */
void *array_push_last(struct lt_array *array, uint32_t *index);

/* Empties the array. A thread that still looks at an element finds the element zero. */
void array_clear(struct lt_array *array);

static inline void array_init(struct lt_array *array, uint32_t element_size, uint32_t first)
{
    array->element_size = element_size;
    array->first = first;
}

#pragma GCC visibility pop

#endif
