/* The table of the program's own locks: the holders and the acquisitions of each lock. */
#include "tables/custom_locks.h"

#include "base/tls.h"
#include "shm/array.h"
#include "shm/segment.h"

enum { CUSTOMS_FIRST = 16 };

void custom_locks_init(void)
{
    array_init(&lt_shm->customs, sizeof(struct lt_custom), CUSTOMS_FIRST);
}

struct lt_custom *custom_lock_of(struct lt_thread *t, const struct lt_lock_counters *counters)
{
    if (!counters->lock)
        return NULL;
    struct lt_lock *lock = array_at(&lt_shm->locks, counters->lock);
    uint32_t at = __atomic_load_n(&lock->type, __ATOMIC_ACQUIRE);
    if (!at) {
        uint32_t mode = thread_busy(t), index;
        if (array_push(&lt_shm->customs, &index) &&
            __atomic_compare_exchange_n(&lock->type, &at, index + 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            at = index + 1;
        thread_ready(t, mode);
    }
    return at ? array_at(&lt_shm->customs, at - 1) : NULL;
}
