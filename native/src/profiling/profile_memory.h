/* The profiles in the shared memory: an entry and a range of counts for each. */
#ifndef LOCKTOP_PROFILE_MEMORY_H
#define LOCKTOP_PROFILE_MEMORY_H

#include <stdbool.h>

#include "profiling/profile.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

void profile_memory_init(void);

/* Gives the profile an entry and counts, all zero, unless it has them; false if there is no room.
 * After a change of the regions: more counts, those of the first buckets as they were. */
bool profile_share(struct profile *profile);

/* Publishes the state of a profile; the entry of a profile that ends. */
void profile_publish_state(struct profile *profile, uint32_t state);
void profile_unshare(struct profile *profile);

/* Forgets the memory of the parent, in a forked child. */
void profile_memory_forget(void);

#pragma GCC visibility pop

#endif
