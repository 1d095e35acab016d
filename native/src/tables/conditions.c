/* The table of condition variables: the threads that sleep in a wait, and those that are woken. */
#include "tables/conditions.h"

#include "shm/array.h"
#include "shm/segment.h"
#include "tables/lock_records.h"
#include "tables/lock_table.h"

enum { CONDITIONS_FIRST = 16 };

void conditions_init(void)
{
    array_init(&lt_shm->conditions, sizeof(struct lt_condition), CONDITIONS_FIRST);
}

struct lt_condition *condition_of(struct lt_thread *t, const struct lt_lock_counters *counters)
{
    return lock_record_of(t, counters, &lt_shm->conditions);
}

struct lt_condition *condition_find(uint64_t key)
{
    const struct lt_lock *lock = lock_find(key);
    return lock ? lock_record(lock, &lt_shm->conditions) : NULL;
}
