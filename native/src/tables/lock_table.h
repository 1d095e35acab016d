/* The locks of the process: one entry for each key, found by many threads at once. */
#ifndef LOCKTOP_LOCKS_H
#define LOCKTOP_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "locktop/abi.h"

/* Is it of a kind for which places are kept, so that it has one when it is waited for? What threads wait
 * for without anybody holding it is no contention; and of a routine that runs once, or a lock of the
 * program's own, each attempt is announced, whether it has to wait or not. */
bool lock_has_reserve(uint64_t key);

/* Makes the tables; 0 on success, -1 if there is no room. */
int lock_table_init(void);

/* The id of the lock, entered if it is new; 0 ("other locks") if there is no room. */
uint32_t lock_id(uint64_t key, uint32_t type);

/* The same of a lock that is waited for: one of the entries that are kept, if there is no room. */
uint32_t lock_id_of_waited(uint64_t key, uint32_t type);

/* The entry if the lock is known, else NULL. */
struct lt_lock *lock_find(uint64_t key);

/* Held lists that name it may be stale. */
void lock_distrust(uint64_t key);

/* Was it ever released by a thread that did not list it, while another one did? */
bool lock_is_distrusted(uint32_t id);

/* Where posts or signals of the lock are counted, with atomic operations, for which a thread has no
 * place of its own. NULL if there is no room. */
struct lt_counts *lock_signal_counts(uint64_t key);

/* Adds a dead thread's figures. One caller at a time. */
void lock_retire_counters(const struct lt_slot *counters);
void lock_retire_site(const struct lt_site *site);

#endif
