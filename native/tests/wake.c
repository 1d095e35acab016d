/* Tests of wakes: who wakes the waiters of a futex is charged with their waits. */
#include "account/wake.h"

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
#include "tables/lock_table.h"
#include "waits.h"

/* The ticks of other threads' waits that the thread is charged with, wherever it woke them. */
static uint64_t charged_with(struct lt_thread *t, uint64_t key)
{
    const struct lt_site *table = shm_ptr(t->sites);
    uint32_t id = lock_id(key, 0) | LT_SITE_BLAME;
    uint64_t ticks = 0;
    for (uint32_t i = 0; i < t->site_capacity; i++)
        if (table[i].count && table[i].lock == id) {
            CHECK(table[i].stack);
            ticks += table[i].wait_ticks;
        }
    return ticks;
}

static bool wake_of(struct lt_thread *t, uint64_t key)
{
    struct wake wake;
    if (!wake_begin(t, key, &wake))
        return false;
    wake_end(t, &wake, &frames[MIDDLE]);
    return true;
}

static void wake_of_an_unknown_word_makes_nothing(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_FUTEX, 1);
    uint32_t counted = t->counters_count;
    CHECK(!wake_of(t, key));
    CHECK(!lock_find(key));
    CHECK_EQUAL(t->counters_count, counted);
}

/* The thread took the lock while it was free, so the library did not see that. */
static void waker_that_never_waited_is_charged(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_FUTEX, 2), unit = wait_unit();
    lock_id(key, 0);
    CHECK(!wake_of(t, key));
    uint64_t began = lt_now() - 1000 * unit;
    blame_wait_begins(lock_find(key), began, true);
    CHECK(wake_of(t, key));
    uint64_t now = lt_now(), ticks = charged_with(t, key);
    CHECK(ticks >= 999 * unit && ticks <= now - began + unit);
    CHECK(!counters_find(t, key));
    blame_wait_ends_alone(lock_find(key), lt_now());
    CHECK_EQUAL(lock_find(key)->waits, 0);
    CHECK(!wake_of(t, key));
}

/* The lock was held by others before, and by this thread since its wait ended. */
static void waker_that_waited_is_charged_with_its_hold(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_FUTEX, 3), unit = wait_unit();
    struct waiting w = wait_lasting(t, key, 100 * unit);
    blame_wait_begins(lock_find(key), w.start, true);
    while (lt_now() <= w.start + 300 * unit)
        continue;
    wait_end_done(&w);
    uint64_t got_at = counters_find(t, key)->woken_at;
    CHECK_EQUAL(got_at, w.start + 100 * unit);
    CHECK(wake_of(t, key));
    uint64_t hold = waits_counted(t, key)->hold_contended_ticks, ticks = charged_with(t, key);
    CHECK_EQUAL(waits_counted(t, key)->hold_contended, 1);
    CHECK(hold >= 200 * unit && hold <= lt_now() - got_at);
    CHECK_EQUAL(counts_of(t, key)->hold_max, hold);
    CHECK(ticks >= hold - unit && ticks <= hold + unit);
    blame_wait_ends_alone(lock_find(key), lt_now());
    CHECK(!wake_of(t, key)); /* the hold is over */
    CHECK_EQUAL(waits_counted(t, key)->hold_contended, 1);
}

/* A woken thread found the lock taken once more, and the kernel refused a second wait. */
static void refused_wait_is_no_hold(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_FUTEX, 4), unit = wait_unit();
    struct waiting w = wait_of(t, key);
    wait_end_refused(&w);
    CHECK_EQUAL(counters_find(t, key)->woken_at, 0);
    w = wait_lasting(t, key, 100 * unit);
    wait_end_done(&w);
    w = wait_of(t, key);
    wait_end_refused(&w);
    CHECK_EQUAL(counters_find(t, key)->woken_at, w.start);
    CHECK(wake_of(t, key));
}

static void wait_without_the_word_is_no_hold(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_FUTEX, 5), unit = wait_unit();
    struct waiting w = wait_lasting(t, key, 100 * unit);
    wait_end_without(&w);
    CHECK_EQUAL(counters_find(t, key)->woken_at, 0);
}

/* Of a hold that began with a wait, and of one that did not. */
static void wake_is_recorded(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_FUTEX, 6), unit = wait_unit();
    struct waiting w = wait_lasting(t, key, 100 * unit);
    wait_end_done(&w);
    uint64_t got_at = w.start + 100 * unit, records = t->ring_head;
    while (lt_now() <= got_at)
        continue;
    CHECK(wake_of(t, key));
    CHECK_EQUAL(t->ring_head, records + 1);
    struct record record = last_record(t);
    CHECK_EQUAL(record.type, LT_RECORD_RELEASE);
    CHECK_EQUAL(record.kind, LT_KIND_FUTEX);
    CHECK_EQUAL(record.lock, lock_id(key, 0));
    CHECK_EQUAL(record.start, got_at);
    CHECK(record.hold && record.hold <= lt_now() - got_at);
    CHECK_EQUAL(record.wait, 0);
    uint64_t began = lt_now() - 1000 * unit;
    blame_wait_begins(lock_find(key), began, true);
    CHECK(wake_of(t, key));
    CHECK_EQUAL(t->ring_head, records + 2);
    record = last_record(t);
    CHECK(record.start > began && record.start <= lt_now());
    CHECK_EQUAL(record.hold, 0);
    CHECK(record.stack);
    blame_wait_ends_alone(lock_find(key), lt_now());
    CHECK(!wake_of(t, key));
    CHECK_EQUAL(t->ring_head, records + 2);
}

static bool post_of(struct lt_thread *t, uint64_t key)
{
    struct wake wake;
    counters_of(t, key, 0)->counts.signals++;
    if (!wake_begin_post(t, key, &wake))
        return false;
    wake_end(t, &wake, &frames[MIDDLE]);
    return true;
}

/* A thread that took a unit held what the others waited for. A producer of work held nothing, and
 * the waits until its post are nobody's. */
static void post_of_a_taken_unit_is_charged(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_SEM, 7), unit = wait_unit();
    struct waiting w = wait_lasting(t, key, 100 * unit);
    wait_end_done(&w);
    while (lt_now() <= w.end)
        continue;
    blame_wait_begins(lock_find(key), lt_now() - 1000 * unit, true);
    uint64_t records = t->ring_head;
    CHECK(post_of(t, key));
    uint64_t ticks = charged_with(t, key);
    CHECK(ticks >= 999 * unit);
    CHECK_EQUAL(t->ring_head, records + 1);
    struct record record = last_record(t);
    CHECK_EQUAL(record.type, LT_RECORD_RELEASE);
    CHECK_EQUAL(record.kind, LT_KIND_SEM);
    CHECK(record.hold && record.hold <= lt_now() - w.end);
    while (!blame_is_due(lock_id(key, 0)))
        continue;
    CHECK(!post_of(t, key));
    CHECK_EQUAL(charged_with(t, key), ticks);
    CHECK_EQUAL(waits_counted(t, key)->hold_contended, 0);
    blame_wait_ends_alone(lock_find(key), lt_now());
}

static uint64_t hold_of_post(struct lt_thread *t, uint64_t key)
{
    blame_wait_begins(lock_find(key), lt_now() - 1000 * wait_unit(), true);
    CHECK(post_of(t, key));
    struct record record = last_record(t);
    CHECK_EQUAL(record.type, LT_RECORD_RELEASE);
    blame_wait_ends_alone(lock_find(key), lt_now());
    return record.hold;
}

/* Returns when the hold has begun. */
static void take_after_wait(struct lt_thread *t, uint64_t key)
{
    struct waiting w = wait_lasting(t, key, 100 * wait_unit());
    wait_end_done(&w);
    while (lt_now() <= w.end)
        continue;
}

/* A unit that was free, after a hold that began with a wait, and a unit beside another one. */
static void only_the_hold_of_one_unit_after_a_wait_is_known(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_SEM, 8);
    take_after_wait(t, key);
    CHECK(hold_of_post(t, key));
    sem_passed(t, key, t);
    CHECK_EQUAL(hold_of_post(t, key), 0);
    sem_passed(t, key, t);
    take_after_wait(t, key);
    CHECK_EQUAL(hold_of_post(t, key), 0);
    CHECK_EQUAL(hold_of_post(t, key), 0);
    take_after_wait(t, key);
    CHECK(hold_of_post(t, key));
    take_after_wait(t, key);
    counters_time_next_hold(t); /* the level changed: the hooks may have missed a post */
    CHECK_EQUAL(hold_of_post(t, key), 0);
    CHECK_EQUAL(waits_counted(t, key)->hold_contended, 0);
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    wake_of_an_unknown_word_makes_nothing(t);
    waker_that_never_waited_is_charged(t);
    waker_that_waited_is_charged_with_its_hold(t);
    refused_wait_is_no_hold(t);
    wait_without_the_word_is_no_hold(t);
    wake_is_recorded(t);
    post_of_a_taken_unit_is_charged(t);
    only_the_hold_of_one_unit_after_a_wait_is_known(t);
    return 0;
}
