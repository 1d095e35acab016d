/* The life of a lock: the program initialises it, and destroys it, at one address. */
#ifndef LOCKTOP_LOCK_LIFE_H
#define LOCKTOP_LOCK_LIFE_H

#include <stdint.h>

/* The program initialised the lock. `frame`: of the hook that the program called, or NULL. `type`:
 * as in struct lt_lock, 0 unless only the call knows the type. */
void lock_life_begins(uint64_t key, uint32_t type, const uintptr_t *frame);

/* The program destroyed the lock. */
void lock_life_ends(uint64_t key);

#endif
