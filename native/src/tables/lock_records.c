/* Records that only some locks have: custom locks and condition variables. */
#include "tables/lock_records.h"

#include <stdbool.h>

#include "base/tls.h"
#include "shm/array.h"
#include "shm/segment.h"

void *lock_record(const struct lt_lock *lock, const struct lt_array *records)
{
    uint32_t number = __atomic_load_n(&lock->type, __ATOMIC_ACQUIRE);
    return number ? array_at(records, number - 1) : NULL;
}

void *lock_record_of(struct lt_thread *t, const struct lt_lock_counters *counters,
                     struct lt_array *records)
{
    if (!counters->lock)
        return NULL;
    struct lt_lock *lock = array_at(&lt_shm->locks, counters->lock);
    if (!__atomic_load_n(&lock->type, __ATOMIC_RELAXED)) {
        uint32_t mode = thread_busy(t), index, none = 0;
        if (array_push(records, &index)) /* another thread may be first */
            __atomic_compare_exchange_n(&lock->type, &none, index + 1, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED);
        thread_ready(t, mode);
    }
    return lock_record(lock, records);
}
