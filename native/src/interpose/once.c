/* One-time initialisation. The thread that runs the routine holds the control, and the others wait
 * for it. Which thread that is shows when libc calls the routine, so libc gets a routine of this
 * library. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <threads.h>

#include "account/hold.h"
#include "account/wait.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "interpose/real.h"
#include "order/lock_order.h"
#include "stack/capture.h"
#include "tables/thread_table.h"

enum { DONE = 2 }; /* glibc, nptl/pthread_once.c: __PTHREAD_ONCE_DONE */

/* One call, on the stack of its hook: the routine has no argument to pass it in. */
struct once_call {
    struct waiting waiting;
    struct once_call *outer;
    void (*routine)(void);
};
static __thread struct once_call *innermost;

static inline uint64_t key_of(const void *control)
{
    return lock_key(LT_KIND_ONCE, control);
}

static inline bool is_done(const void *control)
{
    return LIKELY(__atomic_load_n((const int *)control, __ATOMIC_ACQUIRE) == DONE);
}

/* Runs when the routine returns, throws or is cancelled. */
static void routine_ended(struct once_call **call)
{
    struct lt_thread *t = (*call)->waiting.thread;
    struct release release;
    if (watched() != t || !t)
        return;
    release_begin(t, (*call)->waiting.key, &release);
    release_end(t, &release);
}

static void run_routine(void)
{
    __attribute__((cleanup(routine_ended))) struct once_call *call = innermost;
    struct waiting *waiting = &call->waiting;
    wait_end_refused(waiting); /* the call was no wait */
    if (watched() == waiting->thread)
        acquired(waiting->thread, waiting->key, 0, waiting->site, 0);
    else
        waiting->thread = NULL;
    innermost = call->outer; /* a pthread_once() inside the routine is another call */
    call->outer = call;      /* settled: there is nothing left to take back */
    call->routine();
}

/* Runs when a cancellation unwinds from the wait for another thread's routine. */
static void call_ended(struct once_call *call)
{
    if (call->outer == call)
        return;
    innermost = call->outer;
    wait_abandoned(&call->waiting);
}

typedef int (*once_function)(void *control, void (*routine)(void));

static int once_posix(void *control, void (*routine)(void))
{
    return real_pthread_once(control, routine);
}

static int once_c11(void *control, void (*routine)(void))
{
    real_call_once(control, routine);
    return 0;
}

/* A call that waited holds nothing. The call counts as a contended acquisition that was held for no
 * time. So the hold time of the thread that ran the routine stays as it is. */
static void held_by_another(struct lt_thread *t, uint64_t key)
{
    if (watched() == t)
        waits_of(t, counters_of(t, key, 0))->hold_contended++;
}

static NOINLINE int once_watched(struct lt_thread *t, once_function real, void *control,
                                 void (*routine)(void), const uintptr_t *frame)
{
    __attribute__((cleanup(call_ended))) struct once_call call = {.outer = innermost,
                                                                  .routine = routine};
    order_before(t, key_of(control), 0, false, frame);
    wait_begin(t, &call.waiting, &(struct wait_for){.key = key_of(control)}, frame);
    innermost = &call;
    int result = real(control, run_routine);
    if (call.outer != &call) { /* another thread ran the routine */
        innermost = call.outer;
        wait_end_done(&call.waiting);
        held_by_another(t, call.waiting.key);
        call.outer = &call;
    }
    return result;
}

static inline int once(once_function real, void *control, void (*routine)(void),
                       const uintptr_t *frame)
{
    struct lt_thread *t = is_done(control) ? NULL : watched();
    return t ? once_watched(t, real, control, routine, frame) : real(control, routine);
}

EXPORT int pthread_once(pthread_once_t *control, void (*routine)(void))
{
    return once(once_posix, control, routine, FRAME());
}

EXPORT void call_once(once_flag *flag, void (*routine)(void))
{
    once(once_c11, flag, routine, FRAME());
}

ALSO(pthread_once);
