/* The table of condition variables: the threads that sleep in a wait, and those that are woken. */
#include "tables/conditions.h"

#include "base/tls.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "tables/lock_table.h"

enum { CONDITIONS_FIRST = 16 };

void conditions_init(void)
{
    array_init(&lt_shm->conditions, sizeof(struct lt_condition), CONDITIONS_FIRST);
}

static struct lt_condition *entry_at(uint32_t index_and_one)
{
    return index_and_one ? array_at(&lt_shm->conditions, index_and_one - 1) : NULL;
}

struct lt_condition *condition_of(struct lt_thread *t, const struct lt_lock_counters *counters)
{
    if (!counters->lock)
        return NULL;
    struct lt_lock *lock = array_at(&lt_shm->locks, counters->lock);
    uint32_t at = __atomic_load_n(&lock->type, __ATOMIC_ACQUIRE);
    if (!at) {
        uint32_t mode = thread_busy(t), index;
        if (array_push(&lt_shm->conditions, &index) &&
            __atomic_compare_exchange_n(&lock->type, &at, index + 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            at = index + 1;
        thread_ready(t, mode);
    }
    return entry_at(at);
}

struct lt_condition *condition_find(uint64_t key)
{
    struct lt_lock *lock = lock_find(key);
    return lock ? entry_at(__atomic_load_n(&lock->type, __ATOMIC_ACQUIRE)) : NULL;
}
