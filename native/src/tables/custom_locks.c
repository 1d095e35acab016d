/* The table of the program's own locks: the holders and the acquisitions of each lock. */
#include "tables/custom_locks.h"

#include "shm/array.h"
#include "shm/segment.h"
#include "tables/lock_records.h"

enum { CUSTOMS_FIRST = 16 };

void custom_locks_init(void)
{
    array_init(&lt_shm->customs, sizeof(struct lt_custom), CUSTOMS_FIRST);
}

struct lt_custom *custom_lock_of(struct lt_thread *t, const struct lt_lock_counters *counters)
{
    return lock_record_of(t, counters, &lt_shm->customs);
}
