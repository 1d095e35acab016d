/* Charges a thread that wakes the waiters of a futex. */
#include "account/wake.h"

#include "account/deferred_events.h"
#include "account/hold.h"
#include "base/clock.h"
#include "stack/capture.h"
#include "tables/lock_table.h"

bool wake_begin(struct lt_thread *t, uint64_t key, struct wake *wake)
{
    *wake = (struct wake){.key = key, .counters = counters_find(t, key)};
    uint64_t since = wake->counters ? wake->counters->woken_at : 0;
    uint32_t id = wake->counters ? wake->counters->lock : lock_id_if_known(key);
    if (!since && !blame_is_due(id))
        return false;
    uint64_t now = lt_now();
    wake->lock = id;
    wake->end = now;
    wake->due = blame_take(id, now, since, false);
    wake->hold = since && now > since ? now - since : 0;
    if (wake->counters)
        wake->counters->woken_at = 0;
    return true;
}

/* When the thread got, by a wait, the unit that it posts; 0: not known, or it has more units. */
static uint64_t unit_since(struct lt_thread *t, const struct lt_lock_counters *counters)
{
    if (units_of(&counters->counts) || !(counters->taken_at >> LT_TAKEN_STACK_BIT & 1))
        return 0;
    const struct lt_waits *waits = sem_waits(t, counters);
    return waits ? waits->unit_since : 0;
}

bool wake_begin_post(struct lt_thread *t, uint64_t key, struct wake *wake)
{
    const struct lt_lock_counters *counters = counters_find(t, key);
    uint32_t id = counters ? counters->lock : lock_id_if_known(key);
    if (!blame_is_due(id))
        return false;
    uint64_t now = lt_now(), since = counters ? unit_since(t, counters) : 0;
    *wake = (struct wake){.key = key,
                          .lock = id,
                          .end = now,
                          .hold = since && now > since ? now - since : 0,
                          .due = blame_take(id, now, 0, false)};
    return (wake->due.ticks || wake->hold) && counters && units_of(&counters->counts) >= 0;
}

/* Without a known hold, the record says when the thread released the lock. `stack`: of the wake. */
static void record_release(struct lt_thread *t, const struct wake *wake, uint32_t stack)
{
    struct lock_event event = {.type = LT_RECORD_RELEASE,
                               .kind = (uint32_t)(wake->key >> LT_KIND_SHIFT),
                               .lock = wake->lock,
                               .stack = stack,
                               .start = wake->end - wake->hold,
                               .hold = wake->hold};
    event_write(t, &event);
}

void wake_end(struct lt_thread *t, const struct wake *wake, const uintptr_t *frame)
{
    uint32_t stack = 0;
    if (t != lt_own.block)
        return; /* the process forked meanwhile: the block is the parent's */
    if (wake->hold && wake->counters)
        hold_add_contended(t, wake->counters, wake->hold);
    if (!is_at_level(LT_LEVEL_CONTENDED))
        return;
    if (wake->due.ticks) {
        uint32_t mode = thread_busy(t);
        stack = stack_capture(t, frame);
        site_add(t, wake->lock | LT_SITE_BLAME, stack, wake->due.ticks);
        thread_ready(t, mode);
    }
    if (wake->hold || wake->due.ticks)
        record_release(t, wake, stack);
}
