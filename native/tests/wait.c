/* Tests of waits: what a wait publishes while it lasts, and what the wait counts when it ends. */
#include <stdbool.h>
#include <stdint.h>

#include "account/blame.h"
#include "account/hold.h"
#include "account/wait.h"
#include "accounting.h"
#include "base/clock.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"
#include "records.h"
#include "tables/held_list.h"
#include "tables/lock_table.h"
#include "waits.h"

static void a_wait_is_published_while_it_lasts(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_COND, 1), other = key_of(LT_KIND_COND, 2);
    uint64_t before = lt_now();
    uint32_t seq = t->wait.seq;
    struct waiting w;
    wait_begin(
        t, &w,
        &(struct wait_for){
            .key = key, .published_key = other, .flags = LT_WAIT_TIMED, .holder = 17, .mutex = 23},
        &frames[MIDDLE]);
    CHECK_EQUAL(t->wait.key, other);
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
        CHECK_EQUAL(waiters_of(key), 1);
        w.end = w.start + lasts[i];
        wait_end_holding(&w, 0);
        CHECK_EQUAL(waiters_of(key), 0);
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

static struct waiting wait_after_attempt(struct lt_thread *t, uint64_t key, uint64_t attempted)
{
    struct waiting w;
    wait_begin(t, &w, &(struct wait_for){.key = key, .since = lt_now() - attempted},
               &frames[MIDDLE]);
    w.end = w.start + 500;
    return w;
}

/* The wait began with the attempt that failed. */
static void the_time_of_an_attempt_counts(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_MUTEX, 26);
    struct waiting w = wait_after_attempt(t, key, 3000);
    uint64_t waited = w.attempted + 500;
    CHECK(w.attempted >= 3000);
    wait_end_holding(&w, 0);
    CHECK_EQUAL(waits_counted(t, key)->wait_ticks, waited);
    const struct lt_held *held = held_find(t, key);
    CHECK_EQUAL(held->wait_start, w.start - w.attempted);
    CHECK_EQUAL(held->wait_ticks, waited);
    CHECK_EQUAL(held->since, w.end);
    drop(t, key);
    w = wait_after_attempt(t, key, 3000);
    wait_end_without(&w);
    CHECK_EQUAL(last_record(t).start, w.start - w.attempted);
    CHECK_EQUAL(last_record(t).wait, w.attempted + 500);
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
    CHECK_EQUAL(waiters_of(key), 0);
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
    CHECK_EQUAL(waiters_of(key), 0);
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
    CHECK_EQUAL(waiters_of(key), 1);
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

/* A forked child has the parent's wait on its stack. The child must not write to the block. */
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
    a_wait_that_holds_nothing_is_recorded(t);
    the_time_of_an_attempt_counts(t);
    a_timeout_adds_time_but_no_acquisition(t);
    a_cancelled_wait_counts_as_a_timeout(t);
    a_refused_call_was_no_wait(t);
    what_came_at_once_is_no_contention(t);
    a_clock_that_goes_back_adds_nothing(t);
    stacks_and_blame_begin_at_the_level_contended(t);
    a_wait_that_ends_dormant_lists_nothing(t);
    the_wait_of_another_block_counts_nothing(t);
    a_mutex_taken_back_is_counted_from_the_signal(t);
    return 0;
}
