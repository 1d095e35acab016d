/* Records that only some locks have. lt_lock.type of such a lock is the record's index + 1. */
#ifndef LOCKTOP_LOCK_RECORDS_H
#define LOCKTOP_LOCK_RECORDS_H

#include "locktop/abi.h"

/* The record in `records` of the lock with this entry, NULL if there is none. */
void *lock_record(const struct lt_lock *lock, const struct lt_array *records);

/* The record of the lock that the thread counts in `counters`, made if there is none. NULL if there
 * is no room. */
void *lock_record_of(struct lt_thread *t, const struct lt_lock_counters *counters,
                     struct lt_array *records);

#endif
