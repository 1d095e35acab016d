/* The table of call stacks. The table keeps each stack once, under an id. */
#ifndef LOCKTOP_STACK_TABLE_H
#define LOCKTOP_STACK_TABLE_H

#include "locktop/abi.h"
#include "shm/segment.h"

/* Makes the table; 0 on success, -1 if there is no room. */
int stack_table_init(void);

static inline struct lt_stack *stack_at(uint32_t id)
{
    return shm_ptr((uint64_t)id * LT_STACK_UNIT);
}

static inline const uint64_t *stack_frames(const struct lt_stack *stack)
{
    return (const uint64_t *)(stack + 1);
}

/* The code of a library is gone from these addresses. Flags the stacks in it. They are not found
 * again, nor confused with stacks of the code that the loader puts there next. */
void stack_table_unloaded(uint64_t start, uint64_t end);

/* The id of these return addresses, entered if they are new; 0 if there is no room. `depth` may
 * carry the flag LT_STACK_CUT. */
uint32_t stack_id(const uint64_t *frames, uint32_t depth);

/* The id of the stack with this one return address; 0 if `site` is NULL, or there is no room. */
uint32_t stack_id_of_site(const void *site);

#endif
