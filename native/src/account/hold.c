/* The slow paths of taking and releasing a lock, and the timing of holds. */
#include "account/hold.h"

#include <stdbool.h>

#include "account/account_state.h"
#include "account/deferred_events.h"
#include "base/clock.h"
#include "shm/control.h"
#include "tables/lock_table.h"

enum {
    SAMPLE_GAP_MAX = 256,
    SAMPLE_COST_READINGS = 5, /* a timed hold costs two readings, and as much as three more */
    SAMPLE_COST_SHARE = 50,   /* 2 %: timing may cost one part in so many */
    PAIR_TICKS = 45           /* a lock and an unlock without the library, about 18 ns at 2.5 GHz */
};

/* Acquisitions until the next timed hold. Timing stays under 2 % of what a lock, its mean hold and
 * an unlock take. At first holds are timed more often. The step is random: a program of the same
 * rhythm would always show the same holds. */
static uint64_t sample_gap(struct lt_thread *t, const struct lt_lock_counters *counters)
{
    uint64_t samples = counters->counts.hold_sampled;
    uint64_t mean = counters->counts.hold_sampled_ticks / samples;
    uint64_t cost = SAMPLE_COST_READINGS * lt_clock.read_ticks;
    uint64_t period = SAMPLE_COST_SHARE * cost / (mean + PAIR_TICKS);
    if (period > SAMPLE_GAP_MAX)
        period = SAMPLE_GAP_MAX;
    if (period > samples)
        period = samples;
    return period <= 1 ? 1 : 1 + random_next(t) % (2 * period - 1);
}

/* At levels that may record holds, sample_at is 0, so every acquisition comes here. The hold is
 * timed as often as at other levels, unless all holds are recorded. */
static void acquired_recorded(struct lt_thread *t, struct lt_lock_counters *counters, uint64_t key,
                              const void *site, uint16_t flags)
{
    const struct lt_waits *waits = waits_of(t, counters);
    bool timed = is_at_level(LT_LEVEL_ALL) || counters->counts.acquisitions >= waits->timing_at;
    flags |= timed ? LT_HELD_TIMED | LT_HELD_RECORDED : LT_HELD_RECORDED;
    uint64_t now = lt_now();
    control_check_claim(now);
    if (UNLIKELY(t->held_top == t->held_size) && !held_grow(t))
        return;
    uint32_t top = t->held_top;
    struct lt_held *held = held_at(t, top);
    do { /* complete before listed: a release follows the pointer in the entry */
        held_fill(held, key, counters->lock, site, flags);
        held->since = now;
        held->wait_start = waits->own;
        held->waits = lock_waits(held);
        __atomic_store_n(&t->held_top, top + (uint32_t)sizeof *held, __ATOMIC_RELEASE);
    } while (UNLIKELY(held_is_lost(held, key)));
}

static void acquired_timed(struct lt_thread *t, struct lt_lock_counters *counters, uint64_t key,
                           const void *site, uint16_t flags)
{
    uint64_t now = lt_now();
    /* a program without a contended wait reads the clock only here */
    control_check_claim(now);
    counters->sample_at = UINT64_MAX; /* until the release sets it again */
    if (!held_push(t, key, counters->lock, site, now, flags | LT_HELD_TIMED))
        counters->sample_at = counters->counts.acquisitions + SAMPLE_GAP_MAX;
}

void acquired_slowly(struct lt_thread *t, uint64_t key, uint32_t type, const void *site,
                     uint16_t flags, struct lt_lock_counters *counters)
{
    if (UNLIKELY(counters->key != key))
        counters = counters_of(t, key, type);
    counters->counts.acquisitions++;
    if (is_at_level(LT_LEVEL_BLOCKS))
        acquired_recorded(t, counters, key, site, flags);
    else if (counters->counts.acquisitions >= counters->sample_at)
        acquired_timed(t, counters, key, site, flags);
    else
        held_push(t, key, counters->lock, site, 0, flags);
}

void acquired_again(struct lt_thread *t, uint64_t key, uint32_t type, const void *site)
{
    struct lt_held *held = held_find(t, key);
    if (!held || held->depth == UINT16_MAX) { /* deeper levels get a second entry */
        acquired(t, key, type, site, 0);
        return;
    }
    held->depth++;
    counters_of(t, key, type)->counts.acquisitions++;
}

void acquired_met(struct lt_thread *t, uint64_t key, uint32_t type, const void *site)
{
    acquired(t, key, type, site, LT_HELD_SHARED);
    uint32_t below;
    struct lt_held *held = held_last(t, &below);
    if (!held || held->key != key || held->flags != LT_HELD_SHARED)
        return; /* there was no room, or the hold is timed anyway */
    held->since = lt_now();
    __atomic_store_n(&held->flags, LT_HELD_SHARED | LT_HELD_MET, __ATOMIC_RELEASE);
}

void passed_recorded(struct lt_thread *t, struct lt_lock_counters *counters, const void *site)
{
    struct lock_event event = {.type = LT_RECORD_HOLD,
                               .kind = (uint32_t)(counters->key >> LT_KIND_SHIFT),
                               .lock = counters->lock,
                               .start = lt_now(),
                               .site = (uint64_t)(uintptr_t)site};
    event_defer(t, &event);
}

static ALWAYS_INLINE void hold_add(struct lt_thread *t, struct lt_lock_counters *counters,
                                   uint16_t flags, uint64_t ticks)
{
    if (flags & LT_HELD_CONTENDED) {
        hold_add_contended(t, counters, ticks);
        return;
    }
    struct lt_counts *counts = &counters->counts;
    hold_add_length(t, counters, ticks);
    counts->hold_sampled++;
    counts->hold_sampled_ticks += ticks;
    if (is_at_level(LT_LEVEL_ALL))
        return; /* every hold is timed: the gap, which takes divisions, is of no use */
    uint64_t next = counts->acquisitions + sample_gap(t, counters);
    if (is_at_level(LT_LEVEL_BLOCKS))
        waits_of(t, counters)->timing_at = next;
    else
        counters->sample_at = next;
}

/* The calling thread does not list the lock. If another thread does, its list is stale after the
 * release. Every list that names the lock may then be stale. The search comes before the release,
 * after which another thread may rightly list the lock. Each lock is searched for once. */
static struct lt_lock *foreign(struct lt_thread *t, uint64_t key)
{
    struct lt_lock *lock = lock_find(key);
    if (!lock)
        return NULL;
    bool has_foreign = __atomic_load_n(&lock->foreign_releases, __ATOMIC_RELAXED) != 0;
    return has_foreign || held_by_others(key, t) ? lock : NULL;
}

/* Whether a hold that began without a wait is recorded at level "contended". A reader wants such
 * records, and a thread waited meanwhile. The clock was read at both ends of the hold anyway. */
static inline bool is_wanted(uint16_t flags, const struct blame_due *due, uint64_t now)
{
    return due->ticks && flags & LT_HELD_TIMED &&
           UNLIKELY(now < __atomic_load_n(&lt_control.page.holds_until, __ATOMIC_RELAXED));
}

static bool is_to_be_recorded(const struct lt_held *held)
{
    if (held->flags & LT_HELD_CONTENDED)
        return true;
    if (!(held->flags & LT_HELD_RECORDED))
        return false;
    return is_at_level(LT_LEVEL_ALL) || somebody_waited(held);
}

void release_begin(struct lt_thread *t, uint64_t key, struct release *release)
{
    release->held.key = 0;
    release->listed = release->shallower = false;
    release->foreign = NULL;
    release->hold = 0;
    release->due = (struct blame_due){0};
    release->accounted = release->recorded = false;
    release->key = key;
    struct lt_held *held = held_find(t, key);
    if (!held) {
        release->foreign = foreign(t, key);
        return;
    }
    if (held->depth) {
        held->depth--;
        release->shallower = true;
        return;
    }
    release->listed = true;
    release->held = *held;
    release->recorded = is_to_be_recorded(held);
    held_remove(t, held);
    /* Read before the lock is free: afterwards another thread may run first. */
    bool due = blame_is_due(release->held.lock);
    bool timed = release->recorded || (release->held.flags & LT_HELD_TIMED) || due;
    release->end = timed ? lt_now() : 0;
    if (due)
        release->due = blame_take(release->held.lock, release->end, blame_since(&release->held),
                                  blame_is_shared(&release->held));
    if (is_wanted(release->held.flags, &release->due, release->end))
        release->recorded = true;
}

/* The assumed length of a hold that was not timed: the mean of the thread's timed holds. The mean
 * counts only if no wait began during the hold. Then all waiters were woken before, or tried again.
 * Where no hold was timed, the whole is charged. */
static NOINLINE uint64_t mean_hold(struct lt_thread *t, uint64_t key)
{
    const struct lt_counts *counts = &counters_of(t, key, 0)->counts;
    return counts->hold_sampled ? counts->hold_sampled_ticks / counts->hold_sampled : UINT64_MAX;
}

/* Charges the thread, which held the lock until now, with what was due. `since`: as blame_since()
 * says. */
static void charge(struct lt_thread *t, uint64_t key, uint32_t id, uint64_t site, uint64_t since,
                   struct blame_due due)
{
    uint64_t mean = since || due.has_new ? UINT64_MAX : mean_hold(t, key);
    if (mean <= due.ticks / due.waiters)
        due.ticks = mean * due.waiters;
    blame_charge(t, id, site, 0, due.ticks);
}

void release_charge(struct lt_thread *t, struct release *release)
{
    const struct lt_held *held = &release->held;
    if (release->due.ticks && t == lt_own.block)
        charge(t, held->key, held->lock, held->site, blame_since(held), release->due);
    release->due.ticks = 0;
}

static uint64_t hold_ticks(uint64_t since, uint64_t end)
{
    return end > since ? end - since : 0;
}

/* The event of a hold that is over. */
static inline struct lock_event event_of(const struct lt_held *held, bool contended)
{
    uint32_t shared = held->flags & LT_HELD_SHARED ? LT_KIND_SHARED : 0;
    return (struct lock_event){.type = contended ? LT_RECORD_WAIT : LT_RECORD_HOLD,
                               .kind = (uint32_t)(held->key >> LT_KIND_SHIFT) | shared,
                               .lock = held->lock,
                               .stack = contended ? held->stack : 0,
                               .holder = contended ? held->holder : 0,
                               .start = contended ? held->wait_start : held->since,
                               .wait = contended ? held->wait_ticks : 0,
                               .site = held->site};
}

void release_account(struct lt_thread *t, struct release *release)
{
    const struct lt_held *held = &release->held;
    if (release->accounted || !held->key || t != lt_own.block)
        return; /* the process forked meanwhile: the block is the parent's */
    release->accounted = true;
    release->hold = hold_ticks(held->since, release->end);
    if (held->flags & LT_HELD_TIMED)
        hold_add(t, counters_of(t, held->key, 0), held->flags, release->hold);
}

void release_end(struct lt_thread *t, struct release *release)
{
    const struct lt_held *held = &release->held;
    if (release->foreign && t == lt_own.block)
        __atomic_fetch_add(&release->foreign->foreign_releases, 1, __ATOMIC_RELAXED);
    /* the process forked meanwhile: the block is the parent's */
    if (!held->key || t != lt_own.block)
        return;
    release_account(t, release);
    release_charge(t, release);
    if (release->recorded) {
        struct lock_event event = event_of(held, held->flags & LT_HELD_CONTENDED);
        event.hold = release->hold;
        event_write(t, &event);
    }
    if (held->flags & LT_HELD_DEFERRED)
        events_flush(t);
}

void release_undo(struct lt_thread *t, struct release *release)
{
    const struct lt_held *was = &release->held;
    struct lt_held *held = NULL;
    if (t != lt_own.block)
        return;
    release_charge(t, release);
    if (release->listed)
        held = held_push(t, was->key, was->lock, (const void *)(uintptr_t)was->site, was->since,
                         (uint16_t)(was->flags & ~LT_HELD_RECORDED));
    if (held)
        *held = *was;
    if (release->shallower && (held = held_find(t, release->key)))
        held->depth++;
}

/* The release failed: lists the lock again. Whether a thread waited for the lock is no longer
 * known. */
static void list_again(struct lt_thread *t, uint64_t key, uint64_t since, uint16_t flags,
                       const struct lock_event *event)
{
    flags &= (uint16_t)~LT_HELD_RECORDED;
    struct lt_held *held =
        held_push(t, key, event->lock, (const void *)(uintptr_t)event->site, since, flags);
    if (!held || !(flags & LT_HELD_CONTENDED))
        return;
    held->wait_start = event->start;
    held->wait_ticks = event->wait;
    held->stack = event->stack;
    held->holder = event->holder;
}

/* The release of the lock taken last, which is most releases that need more than released(). The
 * compiler makes two copies, one for each value of `contended`. Until the lock is free each
 * nanosecond adds to a wait. */
static ALWAYS_INLINE int release_last(struct lt_thread *t, const struct lt_held *last,
                                      uint32_t below, bool contended, int (*unlock)(void *),
                                      void *lock)
{
    uint64_t key = last->key, since = last->since;
    uint16_t flags = last->flags;
    struct lock_event event = event_of(last, contended);
    bool recorded = contended || is_to_be_recorded(last);
    uint64_t now = lt_now();
    uint64_t known_since = blame_since(last);
    struct blame_due due = blame_take(event.lock, now, known_since, blame_is_shared(last));
    held_pop(t, below);
    event.hold = hold_ticks(since, now);
    recorded |= is_wanted(flags, &due, now);
    int result = unlock(lock);
    if (UNLIKELY(t != lt_own.block)) /* the process forked meanwhile: the block is the parent's */
        return result;
    if (due.ticks)
        charge(t, key, event.lock, event.site, known_since, due);
    if (UNLIKELY(result != 0)) {
        list_again(t, key, since, flags, &event);
        return result;
    }
    if (flags & LT_HELD_TIMED)
        hold_add(t, counters_of(t, key, 0), flags, event.hold);
    if (recorded)
        event_write(t, &event);
    return result;
}

int release_by(struct lt_thread *t, uint64_t key, int (*unlock)(void *), void *lock)
{
    uint32_t below;
    const struct lt_held *last = held_last(t, &below);
    if (LIKELY(last && last->key == key && !last->depth && !(last->flags & LT_HELD_DEFERRED)))
        return last->flags & LT_HELD_CONTENDED ? release_last(t, last, below, true, unlock, lock)
                                               : release_last(t, last, below, false, unlock, lock);
    struct release release;
    release_begin(t, key, &release);
    int result = unlock(lock);
    if (result == 0)
        release_end(t, &release); /* the lock may be gone by now */
    else
        release_undo(t, &release);
    return result;
}
