/* Events of contended waits: written at once, or deferred until the thread holds no lock. */
#include "account/deferred_events.h"

#include <stdint.h>

#include "account/account_state.h"
#include "account/event_ring.h"
#include "account/long_waits.h"
#include "base/tls.h"
#include "tables/held_list.h"
#include "tables/thread_table.h"

void event_write(struct lt_thread *t, const struct lock_event *event)
{
    if ((lt_own.mode & LEVEL_MASK) < LT_LEVEL_CONTENDED)
        return;
    uint32_t mode = thread_busy(t);
    if (event->type != LT_RECORD_HOLD && event->type != LT_RECORD_RELEASE)
        site_add(t, event->lock, event->stack, event->wait);
    ring_write(t, event);
    if (UNLIKELY(long_wait_may_be(event->wait)))
        long_wait_note(t, event);
    thread_ready(t, mode);
}

void event_defer(struct lt_thread *t, const struct lock_event *event)
{
    struct account_state *state = account_state(t);
    if (t->held_top == 0 || state->deferred_count == DEFERRED_MAX) {
        event_write(t, event);
        return;
    }
    state->deferred[state->deferred_count++] = *event;
    held_at(t, t->held_top - (uint32_t)sizeof(struct lt_held))->flags |= LT_HELD_DEFERRED;
}

void events_flush(struct lt_thread *t)
{
    struct account_state *state = account_state(t);
    for (uint32_t i = 0; i < state->deferred_count; i++)
        event_write(t, &state->deferred[i]);
    state->deferred_count = 0;
}

void events_forget(struct lt_thread *t)
{
    account_state(t)->deferred_count = 0;
}
