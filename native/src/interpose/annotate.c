/* The functions of locktop.h: a program announces its own locks. A program announces each
 * attempt to take such a lock before and after, whether or not it has to wait. An attempt was
 * contended if another thread had the lock meanwhile. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "account/account_state.h"
#include "account/event_ring.h"
#include "account/hold.h"
#include "account/wait.h"
#include "base/clock.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "order/lock_life.h"
#include "order/lock_order.h"
#include "stack/capture.h"
#include "tables/custom_locks.h"
#include "tables/held_list.h"
#include "tables/lock_names.h"
#include "tables/thread_table.h"

/* The names in the preloaded library. The header declares only macros that call them. */
EXPORT void locktop_name(const void *lock, const char *name);
EXPORT void locktop_mark(const char *text);
EXPORT void locktop_acquire(const void *lock);
EXPORT void locktop_acquire_shared(const void *lock);
EXPORT void locktop_acquired(const void *lock);
EXPORT void locktop_acquired_shared(const void *lock);
EXPORT void locktop_gave_up(const void *lock);
EXPORT void locktop_released(const void *lock);
EXPORT void locktop_forget(const void *lock);

static inline uint64_t key_of(const void *lock)
{
    return lock_key(LT_KIND_CUSTOM, lock);
}

/* ---- pending attempts ---- */

/* One attempt, from acquire to acquired or gave_up. A lock may be built of another one, so a thread
 * may have several. */
struct pending {
    struct waiting waiting;
    const struct lt_custom *custom;
    uint32_t exclusive, shared; /* acquisitions when the attempt began */
    bool wants_shared;
    bool met; /* another thread had the lock then */
};

enum { PENDING_MAX = 3 };
static __thread struct pending pending[PENDING_MAX];
static __thread uint32_t pending_count;

static struct pending *pending_find(uint64_t key)
{
    for (uint32_t i = pending_count; i-- > 0;)
        if (pending[i].waiting.key == key)
            return &pending[i];
    return NULL;
}

/* Drops an attempt: the program never announced its end, and will not do so now. */
static void pending_drop(struct pending *which)
{
    struct pending dropped = *which;
    uint32_t above = pending_count - (uint32_t)(which - pending) - 1;
    memmove(which, which + 1, above * sizeof *which);
    pending_count--;
    wait_end_refused(&dropped.waiting);
}

/* Removes an attempt and returns it. The program will not tell of the attempts that began later
 * either. */
static struct pending pending_take(struct pending *which)
{
    while (&pending[pending_count - 1] > which)
        pending_drop(&pending[pending_count - 1]);
    pending_count--;
    return *which;
}

static struct pending observe(struct lt_thread *t, uint64_t key, bool wants_shared)
{
    const struct lt_custom *custom = custom_lock_of(t, counters_of(t, key, 0));
    struct pending result = {.custom = custom, .wants_shared = wants_shared};
    if (!custom)
        return result;
    uint64_t exclusive = __atomic_load_n(&custom->exclusive, __ATOMIC_ACQUIRE);
    uint64_t shared = __atomic_load_n(&custom->shared, __ATOMIC_ACQUIRE);
    const struct lt_held *held = held_find(t, key); /* the thread's own hold does not count */
    uint32_t own_shared = held && held->flags & LT_HELD_SHARED;
    uint32_t own_exclusive = held && !own_shared;
    result.exclusive = custom_lock_acquisitions(exclusive);
    result.shared = custom_lock_acquisitions(shared);
    result.met = custom_lock_holders(exclusive) > own_exclusive ||
                 (!wants_shared && custom_lock_holders(shared) > own_shared);
    return result;
}

static void begin(const void *lock, bool wants_shared, const uintptr_t *frame)
{
    struct lt_thread *t = watched();
    if (!t)
        return;
    uint64_t key = key_of(lock);
    struct pending *left = pending_find(key);
    if (left || pending_count == PENDING_MAX)
        pending_drop(left ? left : pending);
    order_before(t, key, 0, wants_shared, frame);
    struct pending now = observe(t, key, wants_shared);
    wait_begin(t, &now.waiting,
               &(struct wait_for){
                   .key = key, .flags = wants_shared ? LT_WAIT_SHARED : 0, .is_free = !now.met},
               frame);
    /* Further calls of the caller are part of the wait. */
    account_state(t)->wait_frame = frame + 1;
    pending[pending_count] = now;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    pending_count++;
}

/* Whether another thread had the lock when this attempt began, or took the lock before this one
 * did. */
static bool was_met(struct lt_thread *t, const struct pending *wait)
{
    if (!wait->custom || wait->met)
        return wait->met;
    struct pending now = observe(t, wait->waiting.key, wait->wants_shared);
    return now.exclusive != wait->exclusive || (!wait->wants_shared && now.shared != wait->shared);
}

static void end_holding(const void *lock, bool shared, const void *site)
{
    struct lt_thread *t = watched();
    if (!t)
        return;
    uint64_t key = key_of(lock);
    uint16_t flags = shared ? LT_HELD_SHARED : 0;
    struct pending *waited = pending_find(key);
    struct pending wait = {.waiting.thread = NULL};
    if (waited)
        wait = pending_take(waited);
    const struct lt_held *held = held_find(t, key);
    bool again = held && !!(held->flags & LT_HELD_SHARED) == shared;
    struct lt_custom *custom = custom_lock_of(t, counters_of(t, key, 0));
    /* The call site that wanted the lock, as for a contended attempt: one line for both. */
    const void *from = wait.waiting.thread ? wait.waiting.site : site;
    if (wait.waiting.thread == t && was_met(t, &wait)) {
        wait_end_holding(&wait.waiting, flags);
    } else {
        if (wait.waiting.thread)
            wait_end_refused(&wait.waiting);
        if (again)
            acquired_again(t, key, 0, from);
        else
            acquired(t, key, 0, from, flags);
    }
    if (custom && !again)
        custom_lock_change(shared ? &custom->shared : &custom->exclusive, true);
}

static void end_without(const void *lock)
{
    struct lt_thread *t = watched();
    if (!t)
        return;
    struct pending *waited = pending_find(key_of(lock));
    if (!waited) {
        waits_of(t, counters_of(t, key_of(lock), 0))->trylock_failed++;
        return;
    }
    struct pending wait = pending_take(waited);
    wait_end_without(&wait.waiting);
}

static void release(const void *lock)
{
    struct lt_thread *t = watched();
    if (!t)
        return;
    uint64_t key = key_of(lock);
    const struct lt_held *held = held_find(t, key);
    struct lt_custom *custom = custom_lock_of(t, counters_of(t, key, 0));
    if (custom && !(held && held->depth)) {
        bool shared = held ? held->flags & LT_HELD_SHARED : !custom_lock_holders(custom->exclusive);
        custom_lock_change(shared ? &custom->shared : &custom->exclusive, false);
    }
    if (released_unmet(t, key))
        return;
    struct release release;
    release_begin(t, key, &release);
    release_end(t, &release);
}

/* ---- the functions that the header calls ---- */

void locktop_acquire(const void *lock)
{
    begin(lock, false, FRAME());
}

void locktop_acquire_shared(const void *lock)
{
    begin(lock, true, FRAME());
}

void locktop_acquired(const void *lock)
{
    end_holding(lock, false, __builtin_return_address(0));
}

void locktop_acquired_shared(const void *lock)
{
    end_holding(lock, true, __builtin_return_address(0));
}

void locktop_gave_up(const void *lock)
{
    end_without(lock);
}

void locktop_released(const void *lock)
{
    release(lock);
}

void locktop_name(const void *lock, const char *name)
{
    struct lt_thread *t = watched();
    if (!t)
        return;
    uint32_t mode = thread_busy(t);
    lock_name_set((uint64_t)(uintptr_t)lock, name ? name : "");
    thread_ready(t, mode);
}

void locktop_mark(const char *text)
{
    struct lt_thread *t = watched();
    if (!t || !text || (lt_own.mode & LEVEL_MASK) < LT_LEVEL_CONTENDED)
        return;
    uint32_t mode = thread_busy(t);
    ring_write_mark(t, lt_now(), text);
    thread_ready(t, mode);
}

void locktop_forget(const void *lock)
{
    struct lt_thread *t = watched();
    if (!t)
        return;
    lock_life_ends(key_of(lock));
    held_forget(t, key_of(lock));
}
