/* Where locks were made: what is remembered of an initialisation until the lock is first used, for only
 * then does it get an entry. */
#ifndef LOCKTOP_BIRTHS_H
#define LOCKTOP_BIRTHS_H

#include <stdint.h>

/* The lock was initialised by the call that returns to `site`; `type` as in struct lt_lock, 0 if that
 * is told later. Some are forgotten for others. */
void init_site_note(uint64_t key, uint32_t type, const void *site);

/* The lock is no more. */
void init_site_forget(uint64_t key);

/* The return address of the call that initialised the lock, NULL if that is not known. */
const void *init_site_of(uint64_t key);

/* The type that was noted, 0 if none is known. */
uint32_t init_type_of(uint64_t key);

#endif
