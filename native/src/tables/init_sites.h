/* Init sites: where a lock was initialised. The table remembers that until the first use of the
 * lock. Only then does the lock get an entry in the lock table. */
#ifndef LOCKTOP_INIT_SITES_H
#define LOCKTOP_INIT_SITES_H

#include <stdbool.h>
#include <stdint.h>

#include "locktop/abi.h"

/* Notes the stack of the call that initialised the lock; NULL: not known. The table keeps the
 * pointer. A forked child reads the stack in the file of its parent, which stays mapped. `type`: as
 * in struct lt_lock, 0 if only a later call tells it. `generation`: of the lock's entry in the lock
 * table, 0 without an entry. The table forgets some locks for others. */
void init_site_note(uint64_t key, uint32_t type, const struct lt_stack *stack, uint32_t generation);

/* The lock is destroyed. */
void init_site_forget(uint64_t key);

/* The stack of the call that initialised the lock, NULL if it is not known. */
const struct lt_stack *init_stack_of(uint64_t key);

/* The noted type of the lock, 0 if it is not known. */
uint32_t init_type_of(uint64_t key);

/* This process is a forked child. The table is a copy of the parent's as of the fork. */
void init_sites_forked(void);

/* Whether the parent of this process initialised the lock, and this process did not initialise it
 * since. Then `type` and `generation` are those in the parent at the fork. */
bool init_is_of_parent(uint64_t key, uint32_t *type, uint32_t *generation);

#endif
