/* Tests of waits: what a wait publishes while it lasts, and what it counts when it ends. */
#include "account/wait.h"

#include <stdbool.h>
#include <stdint.h>

#include "account/blame.h"
#include "account/hold.h"
#include "base/clock.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"
#include "records.h"
#include "shm/array.h"
#include "tables/held_list.h"
#include "tables/lock_table.h"
#include "tables/stack_table.h"
#include "tables/thread_table.h"

/* A frame record as a hook has it: a later one lies deeper in the stack. */
enum { DEEP = 0, MIDDLE = 4, HIGH = 8 };
static uintptr_t frames[16] = {[DEEP + 1] = 0x111, [MIDDLE + 1] = 0x222, [HIGH + 1] = 0x333};

static uint64_t key_of(enum lt_kind kind, uint64_t number)
{
    return lock_key(kind, (void *)(0x50000 + number * 64));
}

static uint64_t waits_now(uint64_t key)
{
    return lock_find(key)->waits & WAITS_MASK;
}

static const struct lt_counts *counts_of(struct lt_thread *t, uint64_t key)
{
    return &counters_of(t, key, 0)->counts;
}

static struct lt_waits *waits_counted(struct lt_thread *t, uint64_t key)
{
    return waits_of(t, counters_of(t, key, 0));
}

static struct waiting wait_at(struct lt_thread *t, uint64_t key, int frame)
{
    struct waiting w;
    wait_begin(t, &w, &(struct wait_for){.key = key}, &frames[frame]);
    return w;
}

static struct waiting wait_of(struct lt_thread *t, uint64_t key)
{
    return wait_at(t, key, MIDDLE);
}

/* A wait that lasts exactly `ticks`. */
static struct waiting wait_lasting(struct lt_thread *t, uint64_t key, uint64_t ticks)
{
    struct waiting w = wait_of(t, key);
    w.end = w.start + ticks;
    return w;
}

static void drop(struct lt_thread *t, uint64_t key)
{
    held_forget(t, key);
    CHECK_EQUAL(t->held_top, 0);
}

static void set_level(struct lt_thread *t, uint32_t level)
{
    lt_control.page.mode = (lt_control.page.mode & ~(uint32_t)LEVEL_MASK) | level;
    CHECK(watched() == (level == LT_LEVEL_DORMANT ? NULL : t));
}

static void a_wait_is_published_while_it_lasts(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_COND, 1), shown = key_of(LT_KIND_COND, 2);
    uint64_t before = lt_now();
    uint32_t seq = t->wait.seq;
    struct waiting w;
    wait_begin(
        t, &w,
        &(struct wait_for){
            .key = key, .published_key = shown, .flags = LT_WAIT_TIMED, .holder = 17, .mutex = 23},
        &frames[MIDDLE]);
    CHECK_EQUAL(t->wait.key, shown);
    CHECK_EQUAL(t->wait.lock, lock_id(key, 0));
    CHECK_EQUAL(t->wait.flags, LT_WAIT_TIMED);
    CHECK_EQUAL(t->wait.holder, 17);
    CHECK_EQUAL(t->wait.mutex, 23);
    CHECK_EQUAL(t->wait.site, 0x222);
    CHECK(t->wait.stack && t->wait.stack == w.stack);
    CHECK(t->wait.since == w.start && w.start >= before && w.start <= lt_now());
    CHECK_EQUAL(t->wait.seq, seq + 2);
    wait_end_done(&w);
    CHECK_EQUAL(t->wait.key, 0);
    CHECK_EQUAL(t->wait.seq, seq + 4);
    CHECK_EQUAL(lock_find(key)->waits, 0); /* nobody holds a condition */
}

static void a_wait_that_got_the_lock_is_counted_and_listed(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_MUTEX, 3), lasts[] = {1000, 400, 3000};
    for (int i = 0; i < 3; i++) {
        struct waiting w;
        wait_begin(t, &w, &(struct wait_for){.key = key, .holder = 99}, &frames[MIDDLE]);
        CHECK_EQUAL(waits_now(key), 1);
        w.end = w.start + lasts[i];
        wait_end_holding(&w, 0);
        CHECK_EQUAL(waits_now(key), 0);
        const struct lt_held *held = held_find(t, key);
        CHECK_EQUAL(held->lock, lock_id(key, 0));
        CHECK_EQUAL(held->flags, LT_HELD_TIMED | LT_HELD_CONTENDED);
        CHECK_EQUAL(held->since, w.start + lasts[i]);
        CHECK_EQUAL(held->wait_start, w.start);
        CHECK_EQUAL(held->wait_ticks, lasts[i]);
        CHECK_EQUAL(held->site, 0x222);
        CHECK_EQUAL(held->holder, 99);
        CHECK(held->stack && held->stack == w.stack);
        drop(t, key);
    }
    CHECK_EQUAL(counts_of(t, key)->acquisitions, 3);
    CHECK_EQUAL(waits_counted(t, key)->contended, 3);
    CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 4400);
    CHECK_EQUAL(waits_counted(t, key)->wait_max, 3000);
}

/* The time that readers waited stays due, for another reader may be to blame. Between the release
 * of a lock and the next acquisition of it alone nobody is. */
static void only_who_has_the_lock_alone_clears_what_is_due(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_RWLOCK, 4);
    uint64_t unit = 1ull << lt_clock.wait_shift;
    struct waiting w = wait_lasting(t, key, 100 * unit);
    wait_end_holding(&w, LT_HELD_SHARED);
    CHECK_EQUAL(held_find(t, key)->flags, LT_HELD_SHARED | LT_HELD_TIMED | LT_HELD_CONTENDED);
    drop(t, key);
    uint64_t due = blame_take(lock_id(key, 0), w.end + unit, 0, false).ticks;
    CHECK(due >= 99 * unit && due <= 101 * unit);
    w = wait_lasting(t, key, 100 * unit);
    wait_end_holding(&w, 0);
    drop(t, key);
    CHECK_EQUAL(blame_take(lock_id(key, 0), w.end + unit, 0, false).ticks, 0);
}

static void a_wait_that_holds_nothing_is_recorded(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_SEM, 5);
    uint64_t records = t->ring_head;
    struct waiting w = wait_lasting(t, key, 700);
    w.holder = 5;
    wait_end_done(&w);
    CHECK_EQUAL(t->held_top, 0);
    CHECK_EQUAL(counts_of(t, key)->acquisitions, 1);
    CHECK_EQUAL(waits_counted(t, key)->contended, 1);
    CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 700);
    CHECK_EQUAL(t->ring_head, records + 1);
    struct record record = last_record(t);
    CHECK_EQUAL(record.type, LT_RECORD_WAIT);
    CHECK_EQUAL(record.kind, LT_KIND_SEM);
    CHECK_EQUAL(record.tid, t->tid);
    CHECK_EQUAL(record.lock, lock_id(key, 0));
    CHECK_EQUAL(record.stack, w.stack);
    CHECK_EQUAL(record.holder, 5);
    CHECK_EQUAL(record.start, w.start);
    CHECK_EQUAL(record.wait, 700);
    CHECK_EQUAL(record.hold, 0);
    CHECK_EQUAL(record.site, 0x222);
}

static void a_timeout_adds_time_but_no_acquisition(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_MUTEX, 6), records = t->ring_head;
    struct waiting w = wait_lasting(t, key, 800);
    wait_end_without(&w);
    CHECK_EQUAL(counts_of(t, key)->acquisitions, 0);
    CHECK_EQUAL(waits_counted(t, key)->contended, 0);
    CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 800);
    CHECK_EQUAL(t->ring_head, records + 1);
    CHECK_EQUAL(last_record(t).type, LT_RECORD_TIMEOUT);
    CHECK_EQUAL(last_record(t).wait, 800);
    CHECK(!held_find(t, key));
    CHECK_EQUAL(waits_now(key), 0);
}

static void a_cancelled_wait_counts_as_a_timeout(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_SEM, 7), records = t->ring_head;
    struct waiting w = wait_lasting(t, key, 800);
    wait_abandoned(&w);
    CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 800);
    CHECK_EQUAL(last_record(t).type, LT_RECORD_TIMEOUT);
    w.thread = NULL; /* the hook says so when the wait has ended */
    wait_abandoned(&w);
    CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 800);
    CHECK_EQUAL(t->ring_head, records + 1);
}

static void a_refused_call_was_no_wait(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_MUTEX, 8), records = t->ring_head;
    struct waiting w = wait_of(t, key);
    wait_end_refused(&w);
    CHECK_EQUAL(t->wait.key, 0);
    CHECK_EQUAL(waits_now(key), 0);
    CHECK(!blame_take(lock_id(key, 0), lt_now(), 0, false).ticks);
    CHECK_EQUAL(counts_of(t, key)->acquisitions, 0);
    CHECK_EQUAL(waits_counted(t, key)->contended, 0);
    CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 0);
    CHECK_EQUAL(t->ring_head, records);
}

static void what_came_at_once_is_no_contention(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_SEM, 9);
    struct waiting w = wait_of(t, key);
    wait_end_at_once(&w);
    CHECK_EQUAL(t->wait.key, 0);
    CHECK_EQUAL(counts_of(t, key)->acquisitions, 1);
    CHECK_EQUAL(waits_counted(t, key)->contended, 0);
    CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 0);
}

static void a_clock_that_goes_back_adds_nothing(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_SEM, 10);
    struct waiting w = wait_of(t, key);
    w.end = w.start - 5;
    wait_end_done(&w);
    CHECK_EQUAL(waits_counted(t, key)->contended, 1);
    CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 0);
}

/* A lock of the program's own is built of others: its wait is one wait. */
static void a_wait_within_a_custom_lock_is_part_of_it(struct lt_thread *t)
{
    uint64_t outer = key_of(LT_KIND_CUSTOM, 11);
    struct waiting w = wait_at(t, outer, HIGH);
    uint32_t seq = t->wait.seq;
    const enum lt_kind parts[] = {LT_KIND_COND, LT_KIND_SEM, LT_KIND_FUTEX};
    for (int i = 0; i < 3; i++) {
        uint64_t key = key_of(parts[i], 12), records = t->ring_head;
        struct waiting inner = wait_lasting(t, key, 100);
        CHECK_EQUAL(t->wait.key, outer);
        wait_end_done(&inner);
        CHECK_EQUAL(t->wait.key, outer);
        CHECK_EQUAL(counts_of(t, key)->acquisitions, parts[i] == LT_KIND_FUTEX ? 0 : 1);
        CHECK_EQUAL(waits_counted(t, key)->contended, 0);
        CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 0);
        inner = wait_lasting(t, key, 100);
        wait_end_without(&inner);
        CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 0);
        CHECK_EQUAL(t->ring_head, records);
    }
    CHECK_EQUAL(t->wait.seq, seq); /* still the same wait */
    CHECK_EQUAL(waits_now(outer), 1);
    w.end = w.start + 1;
    wait_end_holding(&w, 0);
    CHECK_EQUAL(waits_now(outer), 0);
    CHECK_EQUAL(waits_counted(t, outer)->contended, 1);
    drop(t, outer);
}

/* A mutex inside a lock of the program's own, or a signal handler that waits. */
static void an_interrupted_wait_is_published_again(struct lt_thread *t)
{
    const enum lt_kind kinds[] = {LT_KIND_CUSTOM, LT_KIND_MUTEX};
    for (int i = 0; i < 2; i++) {
        uint64_t outer = key_of(kinds[i], 13), key = key_of(LT_KIND_MUTEX, 14 + (uint64_t)i);
        struct waiting w = wait_at(t, outer, HIGH);
        uint64_t since = t->wait.since;
        struct waiting inner = wait_lasting(t, key, 100);
        CHECK_EQUAL(t->wait.key, key);
        CHECK_EQUAL(waits_now(key), 1);
        CHECK_EQUAL(waits_now(outer), 1);
        wait_end_without(&inner);
        CHECK_EQUAL(t->wait.key, outer);
        CHECK_EQUAL(t->wait.since, since);
        CHECK(local_of(t)->wait_frame == &frames[HIGH]);
        CHECK_EQUAL(waits_now(key), 0);
        CHECK_EQUAL(waits_now(outer), 1);
        CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 100);
        wait_end_without(&w);
        CHECK_EQUAL(waits_now(outer), 0);
        CHECK_EQUAL(t->wait.key, 0);
    }
}

static void a_wait_left_by_longjmp_is_taken_back(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_MUTEX, 16);
    struct waiting left = wait_at(t, key, MIDDLE);
    wait_left(t, &frames[DEEP]); /* a handler that interrupts the wait */
    CHECK_EQUAL(t->wait.key, key);
    CHECK_EQUAL(waits_now(key), 1);
    wait_left(t, &frames[HIGH]); /* the caller of what waited */
    CHECK_EQUAL(t->wait.key, 0);
    CHECK_EQUAL(waits_now(key), 0);
    CHECK(!blame_take(lock_id(key, 0), lt_now(), 0, false).ticks);
    wait_forget(t); /* twice is once */
    CHECK_EQUAL(waits_now(key), 0);
    left = wait_at(t, key, DEEP);
    struct waiting next = wait_at(t, key, MIDDLE); /* the first news of the longjmp */
    CHECK_EQUAL(waits_now(key), 1);
    wait_end_without(&next);
    CHECK_EQUAL(t->wait.key, 0);
    (void)left;
}

static uint64_t charged(struct lt_thread *t, uint64_t lock, uint64_t site, uint64_t through)
{
    uint64_t chain[] = {site, lock_id(through, 0)};
    uint32_t stack = stack_id(chain, through ? 2 : 1), id = lock_id(lock, 0) | LT_SITE_BLAME;
    const struct lt_site *table = shm_ptr(t->sites);
    uint64_t found = 0;
    for (uint32_t i = 0; i < t->site_capacity; i++)
        if (table[i].count && table[i].lock == id && table[i].stack == stack)
            found += table[i].wait_ticks;
    return found;
}

/* What others wait for a lock is charged to its holder in two parts, if the holder itself waits:
 * before its own wait, and during it. */
static void a_holder_that_waits_passes_the_blame_on(struct lt_thread *t)
{
    uint64_t held = key_of(LT_KIND_MUTEX, 17), wanted = key_of(LT_KIND_MUTEX, 18);
    uint64_t unit = 1ull << lt_clock.wait_shift;
    acquired(t, held, 0, (void *)0x777, 0);
    struct lt_lock *lock = lock_find(held);
    uint64_t began = lt_now() - 1000 * unit;
    held_find(t, held)->since = began;
    blame_wait_begins(lock, began);
    struct waiting w = wait_of(t, wanted);
    uint64_t before = charged(t, held, 0x777, 0);
    CHECK(before >= 999 * unit && before <= w.start - began + unit);
    CHECK_EQUAL(charged(t, held, 0x777, wanted), 0);
    w.end = w.start + 500 * unit;
    wait_end_without(&w);
    CHECK_EQUAL(charged(t, held, 0x777, 0), before);
    uint64_t during = charged(t, held, 0x777, wanted);
    CHECK(during >= 499 * unit && during <= 501 * unit);
    blame_wait_ends(lock, w.end);
    drop(t, held);
}

/* A lock that the thread took during its wait, in a signal handler, is not behind the wait. */
static void only_locks_held_all_the_while_pass_it_on(struct lt_thread *t)
{
    uint64_t held = key_of(LT_KIND_MUTEX, 19), wanted = key_of(LT_KIND_MUTEX, 20);
    uint64_t unit = 1ull << lt_clock.wait_shift;
    struct waiting w = wait_of(t, wanted);
    acquired(t, held, 0, (void *)0x777, 0);
    blame_wait_begins(lock_find(held), w.start);
    w.end = w.start + 500 * unit;
    wait_end_without(&w);
    CHECK_EQUAL(charged(t, held, 0x777, wanted), 0);
    blame_wait_ends(lock_find(held), w.start);
    drop(t, held);
}

static void charge_begins_at(uint64_t key, uint64_t moment)
{
    lock_find(key)->waits = 0;
    blame_wait_begins(lock_find(key), moment);
}

/* Of two locks the upper one comes or goes during the wait. */
static void the_lower_lock_passes_it_on_in_each_case(struct lt_thread *t)
{
    uint64_t unit = 1ull << lt_clock.wait_shift, wanted = key_of(LT_KIND_MUTEX, 32);
    for (uint64_t comes = 0; comes < 2; comes++) {
        uint64_t low = key_of(LT_KIND_MUTEX, 26 + 3 * comes), top = low + 64;
        acquired(t, low, 0, (void *)0x777, 0);
        if (!comes)
            acquired(t, top, 0, (void *)0x777, 0);
        struct waiting w = wait_of(t, wanted);
        if (comes)
            acquired(t, top, 0, (void *)0x777, 0);
        charge_begins_at(low, w.start);
        charge_begins_at(top, w.start);
        if (!comes)
            held_forget(t, top);
        w.end = w.start + 500 * unit;
        wait_end_without(&w);
        CHECK(charged(t, low, 0x777, wanted) >= 499 * unit);
        CHECK_EQUAL(charged(t, top, 0x777, wanted), 0);
        lock_find(low)->waits = lock_find(top)->waits = 0;
        held_forget(t, top);
        drop(t, low);
    }
}

static void stacks_and_blame_begin_at_the_level_contended(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_MUTEX, 21);
    set_level(t, LT_LEVEL_COUNTING);
    uint64_t records = t->ring_head;
    struct waiting w = wait_lasting(t, key, 50);
    CHECK_EQUAL(w.stack, 0);
    CHECK_EQUAL(lock_find(key)->waits, 0);
    CHECK_EQUAL(t->wait.key, key);
    wait_end_without(&w);
    CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 50);
    CHECK_EQUAL(t->ring_head, records);
    set_level(t, LT_LEVEL_CONTENDED);
    w = wait_lasting(t, key, 50);
    CHECK(w.stack);
    CHECK_EQUAL(waits_now(key), 1);
    wait_end_without(&w);
    CHECK_EQUAL(t->ring_head, records + 1);
}

/* The library became dormant in the middle: the wait counts, but no hook will see the release. */
static void a_wait_that_ends_dormant_lists_nothing(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_MUTEX, 22);
    uint32_t mode = lt_control.page.mode;
    struct waiting w = wait_lasting(t, key, 60);
    lt_control.page.mode = (mode & ~(uint32_t)LEVEL_MASK) | LT_LEVEL_DORMANT;
    wait_end_holding(&w, 0);
    CHECK_EQUAL(t->held_top, 0);
    CHECK_EQUAL(t->wait.key, 0);
    lt_control.page.mode = mode;
    CHECK(watched() == t);
    CHECK_EQUAL(counts_of(t, key)->acquisitions, 1);
    CHECK_EQUAL(waits_counted(t, key)->contended, 1);
    CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 60);
    w = wait_lasting(t, key, 60);
    lt_control.page.mode = (mode & ~(uint32_t)LEVEL_MASK) | LT_LEVEL_DORMANT;
    lt_own.busy++; /* a signal handler inside the library */
    wait_end_done(&w);
    lt_own.busy--;
    lt_control.page.mode = mode;
    CHECK_EQUAL(counts_of(t, key)->acquisitions, 1);
}

/* A forked child still has the parent's wait on its stack. It must not write to the block. */
static void the_wait_of_another_block_counts_nothing(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_SEM, 23), records = t->ring_head;
    struct waiting w = wait_lasting(t, key, 70);
    static struct lt_thread other;
    w.thread = &other;
    wait_end_done(&w);
    wait_end_without(&w);
    wait_end_refused(&w);
    wait_end_holding(&w, 0);
    CHECK_EQUAL(t->wait.key, key); /* as it was */
    CHECK_EQUAL(counts_of(t, key)->acquisitions, 0);
    CHECK_EQUAL(t->ring_head, records);
    w.thread = t;
    wait_end_done(&w);
    CHECK_EQUAL(counts_of(t, key)->acquisitions, 1);
}

/* The end of a condition wait: the mutex is counted from the moment at which the signal came. */
static void a_mutex_taken_back_is_counted_from_the_signal(struct lt_thread *t)
{
    uint64_t cond = key_of(LT_KIND_COND, 24), mutex = key_of(LT_KIND_MUTEX, 25);
    struct waiting w = wait_of(t, cond);
    w.end = lt_now() - 5000;
    wait_mutex_taken_back(&w, mutex, 0);
    CHECK_EQUAL(counts_of(t, mutex)->acquisitions, 1);
    CHECK_EQUAL(waits_counted(t, mutex)->contended, 1);
    uint64_t waited = waits_counted(t, mutex)->wait_ticks;
    CHECK(waited >= 5000 && waited <= lt_now() - w.end);
    CHECK_EQUAL(waits_counted(t, mutex)->wait_max, waited);
    const struct lt_held *held = held_find(t, mutex);
    CHECK_EQUAL(held->flags, LT_HELD_TIMED | LT_HELD_CONTENDED);
    CHECK_EQUAL(held->wait_start, w.end);
    CHECK_EQUAL(held->wait_ticks, waited);
    CHECK_EQUAL(held->since, w.end + waited);
    CHECK_EQUAL(held->stack, w.stack);
    CHECK_EQUAL(held->holder, 0);
    held_forget(t, mutex);
    w.end = lt_now() + 1000000000; /* clocks of two processors may differ */
    wait_mutex_taken_back(&w, mutex, 0);
    CHECK_EQUAL(waits_counted(t, mutex)->contended, 2);
    CHECK_EQUAL(waits_counted(t, mutex)->wait_ticks, waited);
    CHECK_EQUAL(waits_counted(t, mutex)->wait_max, waited);
    held_forget(t, mutex);
    w.end = w.start + 1;
    wait_end_done(&w);
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    a_wait_is_published_while_it_lasts(t);
    a_wait_that_got_the_lock_is_counted_and_listed(t);
    only_who_has_the_lock_alone_clears_what_is_due(t);
    a_wait_that_holds_nothing_is_recorded(t);
    a_timeout_adds_time_but_no_acquisition(t);
    a_cancelled_wait_counts_as_a_timeout(t);
    a_refused_call_was_no_wait(t);
    what_came_at_once_is_no_contention(t);
    a_clock_that_goes_back_adds_nothing(t);
    a_wait_within_a_custom_lock_is_part_of_it(t);
    an_interrupted_wait_is_published_again(t);
    a_wait_left_by_longjmp_is_taken_back(t);
    a_holder_that_waits_passes_the_blame_on(t);
    only_locks_held_all_the_while_pass_it_on(t);
    the_lower_lock_passes_it_on_in_each_case(t);
    stacks_and_blame_begin_at_the_level_contended(t);
    a_wait_that_ends_dormant_lists_nothing(t);
    the_wait_of_another_block_counts_nothing(t);
    a_mutex_taken_back_is_counted_from_the_signal(t);
    return 0;
}
