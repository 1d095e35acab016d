/* The condition variables that threads of this process have waited for. */
#ifndef LOCKTOP_CONDITIONS_H
#define LOCKTOP_CONDITIONS_H

#include "locktop/abi.h"

/* Makes the table. Its memory comes with the first entry. */
void conditions_init(void);

/* The entry of the condition that the thread counts in `counters`, made if there is none. NULL if
 * there is no room. */
struct lt_condition *condition_of(struct lt_thread *t, const struct lt_lock_counters *counters);

/* The entry of the condition, NULL if no thread has waited for it. */
struct lt_condition *condition_find(uint64_t key);

#endif
