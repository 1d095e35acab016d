/* The contended path: publishes a wait, and accounts for it when it ends. */
#include "account/wait.h"

#include <stdbool.h>

#include "account/account_state.h"
#include "account/blame.h"
#include "account/deferred_events.h"
#include "account/hold.h"
#include "account/taken_units.h"
#include "account/wake.h"
#include "base/clock.h"
#include "base/tls.h"
#include "locktop/kind_sets.h"
#include "shm/control.h"
#include "shm/segment.h"
#include "stack/capture.h"
#include "tables/held_list.h"
#include "tables/histogram.h"
#include "tables/lock_table.h"
#include "tables/thread_table.h"

/* `seq` is odd while the fields change: a reader of half a wait sees that. */
static inline void publish_begin(struct lt_wait *to)
{
    __atomic_store_n(&to->seq, to->seq + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* odd before any field changes */
}

static inline void publish_end(struct lt_wait *to)
{
    __atomic_store_n(&to->seq, to->seq + 1, __ATOMIC_RELEASE);
}

static inline void publish(struct lt_thread *t, const struct lt_wait *wait)
{
    struct lt_wait *to = &t->wait;
    publish_begin(to);
    to->flags = wait->flags;
    to->key = wait->key;
    to->lock = wait->lock;
    to->stack = wait->stack;
    to->since = wait->since;
    to->site = wait->site;
    to->holder = wait->holder;
    to->mutex = wait->mutex;
    publish_end(to);
}

static inline void publish_none(struct lt_thread *t)
{
    publish_begin(&t->wait);
    t->wait.key = 0;
    publish_end(&t->wait);
}

static enum lt_kind kind_of(uint64_t key)
{
    return (enum lt_kind)(key >> LT_KIND_SHIFT);
}

/* The other waits are for an event, and say nothing about a lock. */
static bool is_for_lock(uint64_t key)
{
    return !lt_kind_is_in(LT_KINDS_OF_EVENTS, kind_of(key));
}

/* Whether a thread that wakes the waiters may have held what they waited for. */
static bool is_woken(uint64_t key)
{
    return lt_kind_is_in(LT_KINDS_WOKEN, kind_of(key));
}

static bool is_timed_by_wakes(uint64_t key)
{
    return lt_kind_is_in(LT_KINDS_TIMED_BY_WAKES, kind_of(key));
}

/* Whether the wait is part of a wait for a lock that the program made. The outer wait is published
 * and counted, not this one. But a contended mutex inside is of interest. */
static bool is_within(uint64_t key, uint64_t outer)
{
    return lt_kind_is_in(LT_KINDS_COMPOSITE, kind_of(outer)) &&
           lt_kind_is_in(LT_KINDS_INNER, kind_of(key));
}

/* A wait from deeper in the stack than this one was left by longjmp, not interrupted. */
static void keep_outer(struct waiting *w, const uintptr_t *frame)
{
    const uintptr_t *outer_frame = account_state(w->thread)->wait_frame;
    if ((uintptr_t)outer_frame <= (uintptr_t)frame) {
        wait_forget(w->thread);
        return;
    }
    w->outer = w->thread->wait;
    w->outer_frame = outer_frame;
    w->within = is_within(w->key, w->outer.key);
}

void wait_left(struct lt_thread *t, const uintptr_t *frame)
{
    if ((uintptr_t)account_state(t)->wait_frame > (uintptr_t)frame)
        return; /* the caller is a signal handler that interrupted the wait */
    wait_forget(t);
    publish_none(t);
}

/* The lock that counts the wait, or NULL: nobody is to blame for locks without an entry. */
static inline struct lt_lock *counting(struct lt_lock_counters *counters, const struct waiting *w,
                                       uint32_t mode, bool is_held)
{
    if ((mode & LEVEL_MASK) < LT_LEVEL_CONTENDED || !blame_has_holders(kind_of(w->key)))
        return NULL;
    struct lt_lock *lock = (struct lt_lock *)(uintptr_t)waits_of(w->thread, counters)->own;
    fetch_to_write(lock);
    return LIKELY(lock && lock->key == w->key) && blame_wait_begins(lock, w->start, is_held) ? lock
                                                                                             : NULL;
}

/* A thread waits for a condition that the program destroyed: another one lies at its address now.
 * C++ makes it without pthread_cond_init(). */
static inline void lives_again(struct lt_thread *t, struct lt_lock_counters *counters, uint64_t key)
{
    struct lt_lock *lock = (struct lt_lock *)(uintptr_t)waits_of(t, counters)->own;
    if (lock && lock->key == key && __atomic_load_n(&lock->destroyed, __ATOMIC_RELAXED))
        __atomic_store_n(&lock->destroyed, 0, __ATOMIC_RELEASE);
}

void wait_begin(struct lt_thread *t, struct waiting *w, const struct wait_for *what,
                const uintptr_t *frame)
{
    w->thread = t;
    w->key = what->key;
    w->end = 0;
    w->outer.key = 0;
    w->within = false;
    if (UNLIKELY(t->wait.key))
        keep_outer(w, frame);
    w->outer_counted =
        account_state(t)->wait_counted; /* also of a wait that is not published yet */
    w->type = what->type;
    w->holder = what->holder;
    w->site = return_address(frame);
    w->start = lt_now();
    w->attempted = what->since && what->since < w->start ? w->start - what->since : 0;
    control_check_claim(w->start);
    w->counted = NULL;
    if (w->within)
        return;
    w->held_top = t->held_top;
    if (w->held_top)
        blame_charge_held(t, w->held_top, 0, w->start);
    struct lt_lock_counters *counters = counters_of_waited(t, what->key, what->type);
    if (UNLIKELY(histogram_is_full(t)))
        histogram_make_room(t); /* after the wait the thread holds the lock */
    if (kind_of(what->key) == LT_KIND_COND)
        lives_again(t, counters, what->key);
    uint32_t lock = counters->lock;
    uint32_t mode = thread_busy(t);
    if (UNLIKELY(!lock)) /* not counted apart, but published */
        lock = lock_id_of_waited(what->key, what->type);
    account_state(t)->wait_counted = w->counted = counting(counters, w, mode, !what->is_free);
    w->stack = what->stack;
    if (!w->stack && (mode & LEVEL_MASK) >= LT_LEVEL_CONTENDED)
        w->stack = stack_capture(t, frame);
    thread_ready(t, mode);
    account_state(t)->wait_frame = frame;
    publish(t, &(struct lt_wait){.flags = what->flags,
                                 .key = what->published_key ? what->published_key : what->key,
                                 .lock = lock,
                                 .stack = w->stack,
                                 .since = w->start,
                                 .site = (uint64_t)(uintptr_t)w->site,
                                 .holder = what->holder,
                                 .mutex = what->mutex});
}

/* Publishes the outer wait again, if there is one. The lock stops counting the wait, which ended
 * `alone` with the lock or not, unless wait_forget() did that already. */
static inline void take_back(const struct waiting *w, uint64_t end, bool alone)
{
    if (w->within)
        return;
    struct account_state *state = account_state(w->thread);
    if (w->counted && w->counted == state->wait_counted) {
        if (alone)
            blame_wait_ends_alone(w->counted, end);
        else
            blame_wait_ends(w->counted, end);
    }
    state->wait_counted = w->outer_counted;
    if (LIKELY(!w->outer.key)) {
        publish_none(w->thread);
    } else {
        state->wait_frame = w->outer_frame;
        publish(w->thread, &w->outer);
    }
}

void wait_forget(struct lt_thread *t)
{
    struct account_state *state = account_state(t);
    if (state->wait_counted)
        blame_wait_ends(state->wait_counted, t->wait.since);
    state->wait_counted = NULL;
}

/* Whether the library became dormant since the wait began. The wait is counted to its end all the
 * same, and nothing after it. */
static bool is_dormant_now(void)
{
    return dormant(current_mode());
}

static bool is_still_counted(const struct waiting *w)
{
    return is_dormant_now() ? !lt_own.busy && !shm_is_of_parent() : watched() == w->thread;
}

/* Takes the wait back, adds its time and returns the thread's counters; NULL if the watch began
 * anew meanwhile. `alone`: the wait ended with the lock, for this thread alone. */
static inline struct lt_lock_counters *wait_end(struct waiting *w, uint64_t *waited, bool alone)
{
    uint64_t now = UNLIKELY(w->end) ? w->end : lt_now();
    uint64_t end = now > w->start ? now : w->start;
    *waited = end - w->start + w->attempted;
    if (w->thread != lt_own.block)
        return NULL; /* the process forked meanwhile: the block is the parent's */
    take_back(w, end, alone);
    if (!is_still_counted(w) ||
        (w->within && !lt_kind_is_in(LT_KINDS_USES_COUNTED, kind_of(w->key))))
        return NULL;
    struct lt_lock_counters *counters = counters_of(w->thread, w->key, w->type);
    if (w->within)
        return counters;
    uint32_t held_top = w->thread->held_top;
    if (w->held_top && held_top)
        blame_charge_held(w->thread, held_top < w->held_top ? held_top : w->held_top,
                          counters->lock, end);
    if (is_for_lock(w->key))
        w->thread->waited += *waited;
    struct lt_waits *waits = waits_of(w->thread, counters);
    waits->wait_ticks += *waited;
    if (*waited > waits->wait_max)
        waits->wait_max = *waited;
    return counters;
}

void wait_end_holding(struct waiting *w, uint16_t held_flags)
{
    uint64_t waited;
    struct lt_lock_counters *counters = wait_end(w, &waited, !(held_flags & LT_HELD_SHARED));
    if (!counters)
        return;
    counters->counts.acquisitions++;
    waits_of(w->thread, counters)->contended++;
    histogram_add(w->thread, counters, LT_LINE_WAITS, waited);
    if (is_dormant_now())
        return; /* the hooks will not see the release */
    uint64_t start = w->start - w->attempted;
    struct lt_held *held = held_push(w->thread, w->key, counters->lock, w->site, start + waited,
                                     held_flags | LT_HELD_TIMED | LT_HELD_CONTENDED);
    if (!held)
        return;
    held->wait_start = start;
    held->wait_ticks = waited;
    held->stack = w->stack;
    held->holder = w->holder;
}

void wait_mutex_taken_back(const struct waiting *w, uint64_t key, uint32_t type)
{
    struct lt_thread *t = w->thread;
    uint32_t held_top = w->held_top < t->held_top ? w->held_top : t->held_top;
    uint64_t now = lt_now(), waited = now > w->end ? now - w->end : 0;
    struct lt_lock_counters *counters = counters_of_waited(t, key, type);
    struct lt_waits *waits = waits_of(t, counters);
    blame_charge_held(t, held_top, counters_of(t, w->key, w->type)->lock, w->end);
    blame_charge_held(t, held_top, counters->lock, now);
    counters->counts.acquisitions++;
    waits->contended++;
    waits->wait_ticks += waited;
    t->waited += waited;
    if (waited > waits->wait_max)
        waits->wait_max = waited;
    histogram_add(t, counters, LT_LINE_WAITS, waited);
    struct lt_held *held =
        held_push(t, key, counters->lock, w->site, now, LT_HELD_TIMED | LT_HELD_CONTENDED);
    if (!held)
        return;
    held->wait_start = w->end;
    held->wait_ticks = waited;
    held->stack = w->stack;
    held->holder = 0;
}

static void wait_event(struct waiting *w, uint32_t type, const struct lt_lock_counters *counters,
                       uint64_t waited)
{
    struct lock_event event = {.type = type,
                               .kind = (uint32_t)(w->key >> LT_KIND_SHIFT),
                               .lock = counters->lock,
                               .stack = w->stack,
                               .holder = w->holder,
                               .start = w->start - w->attempted,
                               .wait = waited,
                               .site = (uint64_t)(uintptr_t)w->site};
    event_defer(w->thread, &event);
}

/* Where the thread took a unit of a semaphore. A wait within another one takes no stack. */
static uint64_t taken_at(const struct waiting *w)
{
    return w->within || !w->stack ? taken_at_site(w->site) : taken_at_stack(w->stack);
}

void wait_end_done(struct waiting *w)
{
    uint64_t waited;
    struct lt_lock_counters *counters = wait_end(w, &waited, is_woken(w->key));
    if (!counters)
        return;
    if (has_lives(counters->key))
        taken_note(counters, taken_at(w));
    counters->counts.acquisitions++;
    if (w->within)
        return;
    if (is_timed_by_wakes(w->key))
        wake_expect(counters, w->start + waited);
    else if (has_lives(w->key))
        unit_expect_post(w->thread, counters, w->start - w->attempted + waited);
    waits_of(w->thread, counters)->contended++;
    histogram_add(w->thread, counters, LT_LINE_WAITS, waited);
    wait_event(w, LT_RECORD_WAIT, counters, waited);
}

void wait_end_at_once(struct waiting *w)
{
    wait_end_refused(w);
    if (w->thread == lt_own.block && watched() == w->thread)
        passed(w->thread, w->key, w->site);
}

void wait_end_without(struct waiting *w)
{
    uint64_t waited;
    struct lt_lock_counters *counters = wait_end(w, &waited, false);
    if (counters && !w->within)
        wait_event(w, LT_RECORD_TIMEOUT, counters, waited);
}

void wait_end_refused(struct waiting *w)
{
    if (w->thread != lt_own.block)
        return;
    take_back(w, w->start, false);
    if (is_timed_by_wakes(w->key) && !w->within)
        wake_expect_again(w->thread, w->key, w->start);
}

void wait_abandoned(struct waiting *w)
{
    if (w->thread)
        wait_end_without(w);
}
