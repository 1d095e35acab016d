/* Tests of holds: which are recorded at which level. */
#include <stdbool.h>
#include <stdint.h>

#include "account/blame.h"
#include "account/hold.h"
#include "accounting.h"
#include "base/clock.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"
#include "holds.h"
#include "records.h"
#include "tables/held_list.h"
#include "tables/lock_table.h"

/* Checks that the thread wrote one record after so many, and for which lock. Returns the record. */
static struct record only_record_after(const struct lt_thread *t, uint64_t records, uint32_t type,
                                       uint64_t key)
{
    CHECK_EQUAL(t->ring_head, records + 1);
    struct record record = last_record(t);
    CHECK_EQUAL(record.type, type);
    CHECK_EQUAL(record.kind, key >> LT_KIND_SHIFT);
    CHECK_EQUAL(record.lock, lock_id(key, 0));
    CHECK_EQUAL(record.site, SITE);
    return record;
}

static void a_contended_hold_is_recorded_with_its_wait(struct lt_thread *t)
{
    for (int way = 0; way < 2; way++) {
        uint64_t key = key_number(6 + (uint64_t)way), records = t->ring_head;
        uint64_t began = take_contended(t, key)->wait_start;
        release_either(t, key, way);
        struct record record = only_record_after(t, records, LT_RECORD_WAIT, key);
        CHECK_EQUAL(record.stack, 5);
        CHECK_EQUAL(record.holder, 9);
        CHECK_EQUAL(record.start, began);
        CHECK_EQUAL(record.wait, 40000);
        CHECK(record.hold >= 30000 && record.hold <= lt_now() - began - 40000);
        CHECK_EQUAL(waits_counted(t, key)->hold_contended, 1);
        CHECK_EQUAL(waits_counted(t, key)->hold_contended_ticks, record.hold);
        CHECK_EQUAL(counts_of(t, key)->hold_max, record.hold);
        CHECK_EQUAL(counts_of(t, key)->hold_sampled, 0);
        CHECK_EQUAL(counts_of(t, key)->hold_sampled_ticks, 0);
    }
}

static void what_passes_is_recorded_at_the_level_all(struct lt_thread *t)
{
    uint64_t key = lock_key(LT_KIND_BARRIER, (void *)0x61000), records = t->ring_head;
    passed(t, key, (void *)SITE);
    CHECK_EQUAL(t->ring_head, records);
    set_level(t, LT_LEVEL_ALL);
    passed(t, key, (void *)SITE);
    CHECK_EQUAL(counts_of(t, key)->acquisitions, 2);
    CHECK_EQUAL(only_record_after(t, records, LT_RECORD_HOLD, key).hold, 0);
    set_level(t, LT_LEVEL_CONTENDED);
}

static void every_hold_is_recorded_at_the_level_all(struct lt_thread *t)
{
    set_level(t, LT_LEVEL_ALL);
    for (int way = 0; way < 2; way++) {
        uint64_t key = key_number(15 + (uint64_t)way), records = t->ring_head;
        for (uint64_t i = 1; i <= 3; i++) {
            take(t, key);
            struct lt_held *held = held_find(t, key);
            CHECK_EQUAL(held->flags, LT_HELD_TIMED | LT_HELD_RECORDED);
            uint64_t since = held->since -= 10000;
            release_either(t, key, way);
            struct record record = only_record_after(t, records + i - 1, LT_RECORD_HOLD, key);
            CHECK_EQUAL(record.start, since);
            CHECK(record.hold >= 10000 && record.hold <= lt_now() - since);
            CHECK(!record.wait && !record.stack && !record.holder);
            CHECK_EQUAL(counts_of(t, key)->hold_sampled, i);
        }
        CHECK_EQUAL(waits_counted(t, key)->timing_at, 0); /* no hold has to be chosen */
    }
    set_level(t, LT_LEVEL_CONTENDED);
}

/* Somebody waits at the release, or began to wait and gave up meanwhile. */
static void a_hold_that_met_a_waiter_is_recorded_at_the_level_blocks(struct lt_thread *t)
{
    set_level(t, LT_LEVEL_BLOCKS);
    for (int way = 0; way < 2; way++) {
        uint64_t key = key_number(17 + (uint64_t)way), records = t->ring_head;
        take(t, key);
        CHECK(held_find(t, key)->flags & LT_HELD_RECORDED);
        release_either(t, key, way);
        CHECK_EQUAL(t->ring_head, records);
        struct lt_lock *lock = lock_find(key);
        take(t, key);
        blame_wait_begins(lock, lt_now(), true);
        release_either(t, key, way);
        CHECK_EQUAL(t->ring_head, records + 1);
        CHECK_EQUAL(last_record(t).type, LT_RECORD_HOLD);
        take(t, key);
        blame_wait_ends_alone(lock, lt_now());
        release_either(t, key, way);
        CHECK_EQUAL(t->ring_head, records + 2);
        lock->waits = 0;
        take(t, key);
        release_either(t, key, way);
        CHECK_EQUAL(t->ring_head, records + 2);
    }
    uint64_t key = key_number(17);
    held_forget(t, key);
    counters_of(t, key, 0)->counts.acquisitions = 0;
    waits_counted(t, key)->timing_at = UINT64_MAX;
    take(t, key);
    CHECK_EQUAL(held_find(t, key)->flags, LT_HELD_RECORDED);
    CHECK(held_is_unmet(held_find(t, key)));
    blame_wait_begins(lock_find(key), lt_now(), true);
    CHECK(!held_is_unmet(held_find(t, key)));
    lock_find(key)->waits = 0;
    CHECK(released(t, key));
    set_level(t, LT_LEVEL_CONTENDED);
}

/* A timed hold for which a thread waited, as long as a reader wants such records. */
static void a_wanted_hold_is_recorded_at_the_level_contended(struct lt_thread *t)
{
    for (int way = 0; way < 2; way++) {
        uint64_t key = key_number(20 + (uint64_t)way), records = t->ring_head;
        for (int wanted = 0; wanted < 2; wanted++) {
            lt_control.page.holds_until = wanted ? UINT64_MAX : 0;
            take(t, key);
            struct lt_held *held = held_find(t, key);
            held->flags |= LT_HELD_TIMED;
            uint64_t since = held->since = lt_now() - 10000;
            blame_wait_begins(lock_find(key), lt_now() - 5000, true);
            release_either(t, key, way);
            lock_find(key)->waits = 0;
            CHECK_EQUAL(t->ring_head, records + (uint64_t)wanted);
            if (wanted)
                CHECK_EQUAL(only_record_after(t, records, LT_RECORD_HOLD, key).start, since);
        }
        take(t, key); /* nobody waits */
        release_either(t, key, way);
        CHECK_EQUAL(t->ring_head, records + 1);
    }
    lt_control.page.holds_until = 0;
}

static void the_next_hold_to_time_is_planned_at_each_level(struct lt_thread *t)
{
    uint64_t key = key_number(19);
    take(t, key);
    CHECK_EQUAL(counters_of(t, key, 0)->sample_at, UINT64_MAX); /* none while this one lasts */
    release_with(t, key, 0);
    CHECK_EQUAL(counters_of(t, key, 0)->sample_at, 2);
    set_level(t, LT_LEVEL_BLOCKS);
    counters_of(t, key, 0)->sample_at = 0;
    take(t, key);
    release_with(t, key, 0);
    CHECK_EQUAL(counters_of(t, key, 0)->sample_at, 0);
    CHECK(waits_counted(t, key)->timing_at >= 3);
    set_level(t, LT_LEVEL_CONTENDED);
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    a_contended_hold_is_recorded_with_its_wait(t);
    what_passes_is_recorded_at_the_level_all(t);
    every_hold_is_recorded_at_the_level_all(t);
    a_hold_that_met_a_waiter_is_recorded_at_the_level_blocks(t);
    a_wanted_hold_is_recorded_at_the_level_contended(t);
    the_next_hold_to_time_is_planned_at_each_level(t);
    return 0;
}
