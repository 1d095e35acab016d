/* Keeps the long waits of a thread.
 *
 * A new wait always finds a place, so the newest waits are there. The wait that gives way is the
 * oldest of the lock with the most entries. So waits for work, which an idle thread has again and
 * again, leave its rare long waits for other locks. Waits of a second or more count as those of
 * another lock. So shorter ones do not drive them out. */
#include "account/long_waits.h"

#include "account/account_state.h"
#include "account/event_ring.h"
#include "base/clock.h"
#include "shm/arena.h"
#include "shm/control.h"
#include "shm/segment.h"

enum { MARGIN = 100 };

static struct lt_long_wait *entries_of(struct lt_thread *t)
{
    struct account_state *state = account_state(t);
    if (state->long_waits)
        return state->long_waits;
    uint64_t offset = shm_alloc(LT_LONG_WAITS * sizeof(struct lt_long_wait));
    if (!offset)
        return NULL;
    state->long_waits = shm_ptr(offset);
    __atomic_store_n(&t->long_waits, offset, __ATOMIC_RELEASE);
    return state->long_waits;
}

static uint32_t count_alike(const struct lt_long_wait *entries, const struct lt_long_wait *entry)
{
    uint32_t count = 0;
    for (const struct lt_long_wait *each = entries; each < entries + LT_LONG_WAITS; each++)
        count += each->lock == entry->lock && each->is_notable == entry->is_notable;
    return count;
}

/* Of two entries with as many alike: whether `entry` gives way before `other`. */
static bool goes_before(const struct lt_long_wait *entry, const struct lt_long_wait *other)
{
    if (entry->is_notable != other->is_notable)
        return !entry->is_notable;
    return entry->number < other->number;
}

/* A free entry, else the one that gives way to a new wait. */
static struct lt_long_wait *entry_for_new(struct lt_long_wait *entries)
{
    struct lt_long_wait *result = NULL;
    uint32_t most = 0;
    for (struct lt_long_wait *each = entries; each < entries + LT_LONG_WAITS; each++) {
        if (!each->number)
            return each;
        uint32_t count = count_alike(entries, each);
        if (count > most || (count == most && goes_before(each, result))) {
            result = each;
            most = count;
        }
    }
    return result;
}

void long_wait_note(struct lt_thread *t, const struct lock_event *event)
{
    uint64_t second = ticks_of_second(lt_now());
    if (!second)
        return; /* no wait was long yet */
    __atomic_store_n(&lt_clock.long_wait, second / LT_LONG_WAITS_IN_SECOND, __ATOMIC_RELAXED);
    struct lt_long_wait *entries = NULL;
    if (event->wait >= second / LT_LONG_WAITS_IN_SECOND)
        entries = entries_of(t);
    if (!entries)
        return;
    struct lt_long_wait *to = entry_for_new(entries);
    if (to->number && to->is_notable)
        __atomic_store_n(&t->long_waits_dropped, t->long_waits_dropped + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&to->number, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* 0 before the other fields change */
    to->lock = event->lock;
    /* A reader measures the second anew, and may find it shorter. */
    to->is_notable = event->wait >= second - second / MARGIN;
    event_encode(to->record, t->tid, event);
    __atomic_store_n(&to->number, t->ring_head, __ATOMIC_RELEASE);
    __atomic_store_n(&t->long_waits_noted, t->long_waits_noted + 1, __ATOMIC_RELEASE);
}
