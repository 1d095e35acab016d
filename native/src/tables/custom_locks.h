/* The holders and the acquisitions of the program's own locks, which it announces by locktop.h. */
#ifndef LOCKTOP_CUSTOM_LOCKS_H
#define LOCKTOP_CUSTOM_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "locktop/abi.h"

/* Makes the table. Its memory comes with the first entry. */
void custom_locks_init(void);

/* The entry of the lock that the thread counts in `counters`, made if there is none. NULL if there
 * is no room. */
struct lt_custom *custom_lock_of(struct lt_thread *t, const struct lt_lock_counters *counters);

/* The meaning of a word of struct lt_custom in the present epoch. */
uint32_t custom_lock_holders(uint64_t word);
uint32_t custom_lock_acquisitions(uint64_t word);

/* One more thread has the lock (`taken`), or one less. */
void custom_lock_change(uint64_t *word, bool taken);

#endif
