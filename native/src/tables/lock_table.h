/* The lock table: one entry for each lock of the process. Many threads search it at once. */
#ifndef LOCKTOP_LOCK_TABLE_H
#define LOCKTOP_LOCK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "locktop/abi.h"

/* Whether the table reserves entries for this kind of lock. A lock of this kind then has an entry
 * when it is waited for. Conditions, barriers and joins are not among these kinds: nobody holds
 * them, so a wait for one is no contention. Locks of the program's own and pthread_once are not
 * either. The program announces each attempt, whether or not it has to wait. */
bool lock_has_reserve(uint64_t key);

/* Makes the table; 0 on success, -1 if there is no room. */
int lock_table_init(void);

/* The id of the lock, which gets an entry if it has none. 0 ("other locks") if there is no room. */
uint32_t lock_id(uint64_t key, uint32_t type);

/* The same for a lock that is waited for: if there is no room, the lock gets a reserved entry. */
uint32_t lock_id_of_waited(uint64_t key, uint32_t type);

/* The id of the lock if it has an entry, else 0. */
uint32_t lock_id_if_known(uint64_t key);

/* The entry of the lock, or NULL. */
struct lt_lock *lock_find(uint64_t key);

/* Held lists that name the lock may be stale from now on. */
void lock_distrust(uint64_t key);

/* The same, unless it is known already. */
void lock_distrust_once(uint64_t key);

/* Whether a thread that did not list the lock ever released it, while another thread listed it. */
bool lock_is_distrusted(uint32_t id);

/* Counts signals of the lock, with atomic operations, for threads without counters of their own.
 * NULL if there is no room. */
struct lt_counts *lock_signal_counts(uint64_t key);

/* Adds the figures of a dead thread. One caller at a time. `waits`: NULL if there are none. */
void lock_retire_counters(const struct lt_lock_counters *counters, const struct lt_waits *waits);
void lock_retire_site(const struct lt_site *site);
void lock_retire_line(const struct lt_histogram_line *line); /* after its lock's counters */

#endif
