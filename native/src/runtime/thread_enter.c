/* The slow path of watched(): what a hook does before its thread's block is ready. */
#include "runtime/thread_enter.h"

#include <stdint.h>

#include "account/deferred_events.h"
#include "base/tls.h"
#include "order/happens_before.h"
#include "runtime/process.h"
#include "runtime/thread.h"
#include "stack/capture.h"
#include "stack/handler_stack.h"
#include "tables/thread_table.h"

static struct lt_thread *thread_enter(uint32_t mode)
{
    if (mode == MODE_CHILD) {
        process_start_child();
        mode = current_mode();
        if ((mode & LEVEL_MASK) == LT_LEVEL_DORMANT || mode == MODE_CHILD)
            return NULL;
        if (ready(mode))
            return lt_own.block; /* with the locks that the thread held when it forked */
    }
    struct lt_thread *t = lt_own.block;
    if (!t)
        return thread_register();
    if (lt_own.busy && !work_was_left((const uintptr_t *)*FRAME()))
        return NULL;
    if (epoch_of(t->mode) != epoch_of(mode)) { /* the hooks may have missed releases */
        t->held_top = 0;
        events_forget(t);
    }
    counters_time_next_hold(t); /* another level times other holds */
    lt_own.mode = t->mode = mode;
    happens_before_renew_seed(t);
    return t;
}

void thread_enter_init(void)
{
    lt_enter = thread_enter;
}
