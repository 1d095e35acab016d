#include "account/deferred_events.h"

#include <stdint.h>

#include "account/event_ring.h"
#include "tables/held_list.h"
#include "tables/thread_table.h"

void detail_write(struct lt_thread *t, const struct detail *detail)
{
    if ((lt_own.mode & LEVEL_MASK) < LT_LEVEL_CONTENDED)
        return;
    uint32_t mode = thread_busy(t);
    if (detail->type != LT_RECORD_HOLD)
        site_add(t, detail->lock, detail->stack, detail->wait);
    record_write(t, detail);
    thread_ready(t, mode);
}

void detail_defer(struct lt_thread *t, const struct detail *detail)
{
    struct local *local = local_of(t);
    if (t->held_top == 0 || local->deferred_count == DEFERRED_MAX) {
        detail_write(t, detail);
        return;
    }
    local->deferred[local->deferred_count++] = *detail;
    held_at(t, t->held_top - (uint32_t)sizeof(struct lt_held))->flags |= LT_HELD_DEFERRED;
}

void details_flush(struct lt_thread *t)
{
    struct local *local = local_of(t);
    for (uint32_t i = 0; i < local->deferred_count; i++)
        detail_write(t, &local->deferred[i]);
    local->deferred_count = 0;
}
