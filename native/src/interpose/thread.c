/* Threads: creation, end, join and name. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "account/hold.h"
#include "account/wait.h"
#include "base/tls.h"
#include "calls/call_stack.h"
#include "interpose/c11_shim.h"
#include "interpose/real.h"
#include "order/happens_before.h"
#include "profiling/profiles.h"
#include "profiling/thread_starts.h"
#include "runtime/thread.h"
#include "stack/capture.h"

/* ---- create and exit ---- */

/* The start routine that the program passed, in lt_own.interpose. */
struct thread_start {
    void *(*start)(void *);
    void *argument;
};

_Static_assert(sizeof(struct thread_start) <= sizeof(((struct lt_own *)0)->interpose), "too small");

static struct thread_start *thread_start(struct lt_thread *t)
{
    return (struct thread_start *)t->own.interpose;
}

/* Runs when the start routine returns, and when pthread_exit or a cancellation unwinds from it.
 * Destructors run afterwards and may still take locks. The block is theirs until the kernel says
 * that the thread is gone. */
static void ended(struct lt_thread **unused)
{
    (void)unused;
    calls_thread_ends();
    if (UNLIKELY(profiles_count))
        profiles_thread_ends();
    if (lt_own.block)
        __atomic_store_n(&lt_own.block->state, LT_THREAD_EXITING, __ATOMIC_RELEASE);
}

static void begin(struct lt_thread *t)
{
    thread_adopt(t);
    if (UNLIKELY(profiles_of_all_threads))
        profiles_thread_begins();
}

/* The argument stays in the frame while the thread runs. A search for leaks reads the stack, but
 * not the library's memory. */
static void *thread_main(void *argument)
{
    __attribute__((cleanup(ended))) struct lt_thread *t = argument;
    begin(t);
    void *volatile kept = thread_start(t)->argument;
    return thread_start(t)->start(kept);
}

static int thread_main_c11(void *argument)
{
    __attribute__((cleanup(ended))) struct lt_thread *t = argument;
    begin(t);
    thrd_start_t start = (thrd_start_t)(void (*)(void))thread_start(t)->start;
    void *volatile kept = thread_start(t)->argument;
    return start(kept);
}

/* The same for a thread that has no block, while a profile of all threads runs. */
static void profiled_end(struct profiled_start *unused)
{
    (void)unused;
    profiles_thread_ends();
}

static void *profiled_main(void *argument)
{
    __attribute__((cleanup(profiled_end))) struct profiled_start kept = thread_start_take(argument);
    profiles_thread_begins();
    return kept.start(kept.argument);
}

static int profiled_main_c11(void *argument)
{
    __attribute__((cleanup(profiled_end))) struct profiled_start kept = thread_start_take(argument);
    profiles_thread_begins();
    return ((thrd_start_t)(void (*)(void))kept.start)(kept.argument);
}

static struct profiled_start *prepare_profiled(void *(*start)(void *), void *argument)
{
    return UNLIKELY(profiles_of_all_threads) ? thread_start_keep(start, argument) : NULL;
}

/* Prepares a block for a thread about to be created; NULL: create the thread as without the
 * library. */
static struct lt_thread *prepare(void *(*start)(void *), void *argument, const void *site)
{
    struct lt_thread *t = watched();
    struct lt_thread *block = t ? thread_reserve() : NULL;
    if (!block)
        return NULL;
    *thread_start(block) = (struct thread_start){start, argument};
    block->start = (uint64_t)(uintptr_t)start;
    block->created_at = (uint64_t)(uintptr_t)site;
    block->creator = t->tid;
    happens_before_creates(t, block);
    return block;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument)
{
    struct lt_thread *block = prepare(start, argument, __builtin_return_address(0));
    if (!block) {
        struct profiled_start *kept = prepare_profiled(start, argument);
        if (!kept)
            return real_pthread_create(thread, attributes, start, argument);
        int result = real_pthread_create(thread, attributes, profiled_main, kept);
        if (result != 0)
            thread_start_take(kept);
        return result;
    }
    int result = real_pthread_create(thread, attributes, thread_main, block);
    if (result != 0)
        thread_release(block);
    return result;
}

EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
    struct lt_thread *block =
        prepare((void *(*)(void *))(void (*)(void))start, argument, __builtin_return_address(0));
    if (!block) {
        struct profiled_start *kept =
            prepare_profiled((void *(*)(void *))(void (*)(void))start, argument);
        if (!kept)
            return real_thrd_create(thread, start, argument);
        int result = real_thrd_create(thread, profiled_main_c11, kept);
        if (result != thrd_success)
            thread_start_take(kept);
        return result;
    }
    int result = real_thrd_create(thread, thread_main_c11, block);
    if (result != thrd_success)
        thread_release(block);
    return result;
}

/* ---- join ---- */

enum form { JOIN, TIMED, CLOCK };

struct call {
    enum form form;
    clockid_t clock;
    const struct timespec *until;
};

/* All joins count as one "lock": threads come and go, so figures of each one are of no use. */
static const uint64_t join_key = (uint64_t)LT_KIND_JOIN << LT_KIND_SHIFT;

static int call_real(pthread_t thread, void **value, const struct call *call)
{
    switch (call->form) {
    case TIMED: return real_pthread_timedjoin_np(thread, value, call->until);
    case CLOCK: return real_pthread_clockjoin_np(thread, value, call->clock, call->until);
    default: return real_pthread_join(thread, value);
    }
}

static NOINLINE int wait_for(struct lt_thread *t, pthread_t thread, void **value,
                             const struct call *call, const uintptr_t *frame)
{
    struct waiting waiting CANCELLABLE;
    wait_begin(t, &waiting,
               &(struct wait_for){.key = join_key,
                                  .published_key = join_key | (uint64_t)thread,
                                  .flags = call->form == JOIN ? 0 : LT_WAIT_TIMED},
               frame);
    int result = call_real(thread, value, call);
    if (result == 0)
        wait_end_done(&waiting);
    else if (result == ETIMEDOUT)
        wait_end_without(&waiting);
    else
        wait_end_refused(&waiting);
    waiting.thread = NULL;
    return result;
}

/* Some glibcs check the time also for a thread that has ended. A try has no time to check. */
static inline bool tries_first(const struct call *call)
{
    bool odd = call->until && (unsigned long)call->until->tv_nsec >= 1000000000ul;
    return call->form != CLOCK && !odd;
}

static inline int join_any(pthread_t thread, void **value, const struct call *call,
                           const uintptr_t *frame)
{
    struct lt_thread *t = watched();
    /* Of all joins, glibc's tryjoin alone reads a thread that is 0. */
    if (!t || UNLIKELY(!thread))
        return call_real(thread, value, call);
    struct lt_life *life = happens_before_find(thread);
    int tried = tries_first(call) ? real_pthread_tryjoin_np(thread, value) : EBUSY;
    if (tried != 0)
        tried = wait_for(t, thread, value, call, frame);
    else
        passed(t, join_key, return_address(frame));
    if (UNLIKELY(t->wait.key))
        wait_left(t, frame);
    if (tried == 0)
        happens_before_joins(thread, life);
    return tried;
}

EXPORT int pthread_join(pthread_t thread, void **value)
{
    return join_any(thread, value, &(struct call){JOIN, 0, NULL}, FRAME());
}

EXPORT int thrd_join(thrd_t thread, int *result)
{
    if (!watched())
        return real_thrd_join(thread, result);
    void *value;
    int error = join_any(thread, &value, &(struct call){JOIN, 0, NULL}, FRAME());
    if (error == 0 && result)
        *result = (int)(uintptr_t)value; /* glibc keeps the result there (nptl/thrd_join.c) */
    return thrd_result(error);
}

EXPORT int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
    return join_any(thread, value, &(struct call){TIMED, CLOCK_REALTIME, until}, FRAME());
}

EXPORT int pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock,
                                const struct timespec *until)
{
    return join_any(thread, value, &(struct call){CLOCK, clock, until}, FRAME());
}

/* ---- names ---- */

/* Only a thread itself writes to its block; the tool finds another thread's name in /proc. */
EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
    int result = real_pthread_setname_np(thread, name);
    struct lt_thread *t = watched();
    if (result == 0 && t && t->pthread == (uint64_t)thread)
        strncpy((char *)t->name, name, sizeof t->name - 1);
    return result;
}
