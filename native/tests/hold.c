/* Tests of holds: what an acquisition lists, and what a release counts, records and charges. */
#include "account/hold.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "account/blame.h"
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

enum { SITE = 0x777 };

static uint64_t key_number(uint64_t number)
{
    return lock_key(LT_KIND_MUTEX, (void *)(0x60000 + number * 64));
}

static struct lt_counts *counts_of(struct lt_thread *t, uint64_t key)
{
    return &counters_of(t, key, 0)->counts;
}

static struct lt_waits *waits_counted(struct lt_thread *t, uint64_t key)
{
    return waits_of(t, counters_of(t, key, 0));
}

static void take(struct lt_thread *t, uint64_t key)
{
    acquired(t, key, 0, (void *)SITE, 0);
}

/* The real call. Meanwhile a handler may use the room above the list. */
static int agree(void *result)
{
    struct lt_thread *t = watched();
    memset(held_at(t, t->held_top), 0xee, 2 * sizeof(struct lt_held));
    return *(int *)result;
}

static void release_with(struct lt_thread *t, uint64_t key, int result)
{
    CHECK_EQUAL(release_by(t, key, agree, &result), result);
}

/* The two ways to release: at once, or in two steps around the real call. */
static void release_slowly(struct lt_thread *t, uint64_t key, bool succeeds)
{
    struct release release;
    release_begin(t, key, &release);
    memset(held_at(t, t->held_top), 0xee, 2 * sizeof(struct lt_held));
    if (succeeds)
        release_end(t, &release);
    else
        release_undo(t, &release);
}

static void release_either(struct lt_thread *t, uint64_t key, int way)
{
    if (way)
        release_slowly(t, key, true);
    else
        release_with(t, key, 0);
}

static void set_level(struct lt_thread *t, uint32_t level)
{
    lt_control.page.mode = (lt_control.page.mode & ~(uint32_t)LEVEL_MASK) | level;
    CHECK(watched() == t);
}

static uint64_t charged(struct lt_thread *t, uint64_t key)
{
    uint64_t chain[] = {SITE};
    uint32_t stack = stack_id(chain, 1), id = lock_id(key, 0) | LT_SITE_BLAME;
    const struct lt_site *table = shm_ptr(t->sites);
    for (uint32_t i = 0; i < t->site_capacity; i++)
        if (table[i].count && table[i].lock == id && table[i].stack == stack)
            return table[i].wait_ticks;
    return 0;
}

static void a_plain_hold_is_counted_and_sampled(struct lt_thread *t)
{
    for (int way = 0; way < 2; way++) {
        uint64_t key = key_number(1 + (uint64_t)way), records = t->ring_head;
        take(t, key);
        CHECK_EQUAL(counts_of(t, key)->acquisitions, 1);
        struct lt_held *held = held_find(t, key);
        CHECK_EQUAL(held->flags, LT_HELD_TIMED); /* the first hold always is */
        CHECK_EQUAL(held->site, SITE);
        uint64_t since = held->since -= 10000;
        release_either(t, key, way);
        uint64_t most = lt_now() - since;
        CHECK_EQUAL(t->held_top, 0);
        CHECK_EQUAL(counts_of(t, key)->hold_sampled, 1);
        uint64_t hold = counts_of(t, key)->hold_sampled_ticks;
        CHECK(hold >= 10000 && hold <= most);
        CHECK_EQUAL(counts_of(t, key)->hold_max, hold);
        CHECK_EQUAL(waits_counted(t, key)->hold_contended, 0);
        CHECK_EQUAL(t->ring_head, records);
    }
}

static void the_longest_hold_stays_the_longest(struct lt_thread *t)
{
    uint64_t key = key_number(3), longest = 0;
    const uint64_t lasts[] = {1000000, 5000000000, 20000};
    for (int i = 0; i < 3; i++) {
        counters_of(t, key, 0)->sample_at = 0;
        take(t, key);
        held_find(t, key)->since -= lasts[i];
        release_with(t, key, 0);
        longest = i == 1 ? counts_of(t, key)->hold_max : longest;
    }
    CHECK(longest >= 5000000000);
    CHECK_EQUAL(counts_of(t, key)->hold_max, longest);
    CHECK_EQUAL(counts_of(t, key)->hold_sampled, 3);
    CHECK(counts_of(t, key)->hold_sampled_ticks >= 5001020000);
}

/* A hold that ends before it began, by the clock of another processor. */
static void a_clock_that_goes_back_adds_nothing(struct lt_thread *t)
{
    for (int way = 0; way < 2; way++) {
        uint64_t key = key_number(4 + (uint64_t)way);
        take(t, key);
        held_find(t, key)->since += 1000000000000;
        release_either(t, key, way);
        CHECK_EQUAL(counts_of(t, key)->hold_sampled, 1);
        CHECK_EQUAL(counts_of(t, key)->hold_sampled_ticks, 0);
        CHECK_EQUAL(counts_of(t, key)->hold_max, 0);
    }
}

static struct lt_held *take_contended(struct lt_thread *t, uint64_t key)
{
    uint64_t now = lt_now();
    struct lt_held *held = held_push(t, key, lock_id(key, 0), (void *)SITE, now - 30000,
                                     LT_HELD_TIMED | LT_HELD_CONTENDED);
    held->wait_start = now - 70000;
    held->wait_ticks = 40000;
    held->stack = 5;
    held->holder = 9;
    return held;
}

static void a_contended_hold_is_recorded_with_its_wait(struct lt_thread *t)
{
    for (int way = 0; way < 2; way++) {
        uint64_t key = key_number(6 + (uint64_t)way), records = t->ring_head;
        uint64_t began = take_contended(t, key)->wait_start;
        release_either(t, key, way);
        CHECK_EQUAL(t->ring_head, records + 1);
        struct record record = last_record(t);
        CHECK_EQUAL(record.type, LT_RECORD_WAIT);
        CHECK_EQUAL(record.kind, LT_KIND_MUTEX);
        CHECK_EQUAL(record.lock, lock_id(key, 0));
        CHECK_EQUAL(record.stack, 5);
        CHECK_EQUAL(record.holder, 9);
        CHECK_EQUAL(record.start, began);
        CHECK_EQUAL(record.wait, 40000);
        CHECK_EQUAL(record.site, SITE);
        CHECK(record.hold >= 30000 && record.hold <= lt_now() - began - 40000);
        CHECK_EQUAL(waits_counted(t, key)->hold_contended, 1);
        CHECK_EQUAL(waits_counted(t, key)->hold_contended_ticks, record.hold);
        CHECK_EQUAL(counts_of(t, key)->hold_max, record.hold);
        CHECK_EQUAL(counts_of(t, key)->hold_sampled, 0);
        CHECK_EQUAL(counts_of(t, key)->hold_sampled_ticks, 0);
    }
}

static void a_refused_release_lists_the_wait_again(struct lt_thread *t)
{
    for (int way = 0; way < 2; way++) {
        uint64_t key = key_number(8 + (uint64_t)way), records = t->ring_head;
        struct lt_held before = *take_contended(t, key);
        if (way)
            release_slowly(t, key, false);
        else
            release_with(t, key, 1);
        const struct lt_held *held = held_find(t, key);
        CHECK(held && held->since == before.since && held->flags == before.flags);
        CHECK(held->wait_start == before.wait_start && held->wait_ticks == before.wait_ticks);
        CHECK(held->stack == 5 && held->holder == 9 && held->site == SITE);
        CHECK_EQUAL(t->ring_head, records);
        CHECK_EQUAL(waits_counted(t, key)->hold_contended, 0);
        release_with(t, key, 0);
        CHECK_EQUAL(t->ring_head, records + 1);
        CHECK_EQUAL(waits_counted(t, key)->hold_contended, 1);
    }
}

static void a_recursive_lock_goes_level_by_level(struct lt_thread *t)
{
    uint64_t key = key_number(10), records = t->ring_head;
    for (int i = 0; i < 3; i++)
        acquired_again(t, key, 0, (void *)SITE);
    CHECK_EQUAL(t->held_top, sizeof(struct lt_held));
    CHECK_EQUAL(held_find(t, key)->depth, 2);
    CHECK_EQUAL(counts_of(t, key)->acquisitions, 3);
    release_with(t, key, 0);
    CHECK_EQUAL(held_find(t, key)->depth, 1);
    release_with(t, key, 1);
    CHECK_EQUAL(held_find(t, key)->depth, 1);
    release_with(t, key, 0);
    CHECK_EQUAL(held_find(t, key)->depth, 0);
    CHECK_EQUAL(counts_of(t, key)->hold_sampled, 0);
    release_with(t, key, 0);
    CHECK_EQUAL(t->held_top, 0);
    CHECK_EQUAL(counts_of(t, key)->hold_sampled, 1);
    CHECK_EQUAL(t->ring_head, records);
}

static void deeper_than_the_depth_goes_a_second_entry(struct lt_thread *t)
{
    uint64_t key = key_number(11);
    take(t, key);
    held_find(t, key)->depth = UINT16_MAX;
    acquired_again(t, key, 0, (void *)SITE);
    CHECK_EQUAL(t->held_top, 2 * sizeof(struct lt_held));
    release_with(t, key, 0);
    CHECK_EQUAL(t->held_top, sizeof(struct lt_held));
    CHECK_EQUAL(held_find(t, key)->depth, UINT16_MAX);
    held_forget(t, key);
}

/* The hold of a lock that the thread took last is released fast if there is nothing to note. */
static void the_fast_release_leaves_the_rest_to_the_slow_one(struct lt_thread *t)
{
    uint64_t key = key_number(12), other = key_number(13);
    CHECK(!released(t, key)); /* holds nothing */
    take(t, key);
    CHECK(!released(t, key)); /* timed */
    held_find(t, key)->flags = 0;
    CHECK(!released(t, other));
    held_find(t, key)->depth = 1;
    CHECK(!released(t, key));
    held_find(t, key)->depth = 0;
    held_find(t, key)->flags = LT_HELD_SHARED;
    CHECK(released(t, key));
    CHECK_EQUAL(t->held_top, 0);
    take(t, key);
    held_find(t, key)->flags = 0;
    blame_wait_begins(lock_find(key), lt_now());
    CHECK(!released_unmet(t, key));
    lock_find(key)->waits = 0;
    CHECK(released_unmet(t, key));
    CHECK_EQUAL(t->held_top, 0);
}

static void a_reader_who_meets_a_writer_reads_the_clock(struct lt_thread *t)
{
    uint64_t key = key_number(14);
    take(t, key);
    release_with(t, key, 0);
    counters_of(t, key, 0)->sample_at = UINT64_MAX;
    uint64_t before = lt_now();
    acquired_met(t, key, 0, (void *)SITE);
    struct lt_held *held = held_find(t, key);
    CHECK_EQUAL(held->flags, LT_HELD_SHARED | LT_HELD_MET);
    CHECK(held->since >= before && held->since <= lt_now());
    CHECK(blame_since(held) == held->since && blame_is_shared(held));
    release_with(t, key, 0);
    CHECK_EQUAL(counts_of(t, key)->hold_sampled, 1); /* not a sample of its own */
    counters_of(t, key, 0)->sample_at = 0;
    acquired_met(t, key, 0, (void *)SITE);
    CHECK_EQUAL(held_find(t, key)->flags, LT_HELD_SHARED | LT_HELD_TIMED);
    release_with(t, key, 0);
    CHECK_EQUAL(counts_of(t, key)->hold_sampled, 2);
}

static void what_passes_is_recorded_at_the_level_all(struct lt_thread *t)
{
    uint64_t key = lock_key(LT_KIND_BARRIER, (void *)0x61000), records = t->ring_head;
    passed(t, key, (void *)SITE);
    CHECK_EQUAL(t->ring_head, records);
    set_level(t, LT_LEVEL_ALL);
    passed(t, key, (void *)SITE);
    CHECK_EQUAL(counts_of(t, key)->acquisitions, 2);
    CHECK_EQUAL(t->ring_head, records + 1);
    struct record record = last_record(t);
    CHECK_EQUAL(record.type, LT_RECORD_HOLD);
    CHECK_EQUAL(record.kind, LT_KIND_BARRIER);
    CHECK_EQUAL(record.lock, lock_id(key, 0));
    CHECK_EQUAL(record.hold, 0);
    CHECK_EQUAL(record.site, SITE);
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
            CHECK_EQUAL(t->ring_head, records + i);
            struct record record = last_record(t);
            CHECK_EQUAL(record.type, LT_RECORD_HOLD);
            CHECK_EQUAL(record.start, since);
            CHECK(record.hold >= 10000 && record.hold <= lt_now() - since);
            CHECK(!record.wait && !record.stack && !record.holder);
            CHECK_EQUAL(record.site, SITE);
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
        blame_wait_begins(lock, lt_now());
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
    blame_wait_begins(lock_find(key), lt_now());
    CHECK(!held_is_unmet(held_find(t, key)));
    lock_find(key)->waits = 0;
    CHECK(released(t, key));
    set_level(t, LT_LEVEL_CONTENDED);
}

static void the_next_hold_to_time_is_told_at_each_level(struct lt_thread *t)
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

/* Timing takes at most 2 %: holds of some length are timed in turns, random ones. */
static void short_holds_are_timed_in_random_turns(struct lt_thread *t)
{
    enum { ROUNDS = 400 };
    uint64_t key = key_number(20), gaps = 0, least = UINT64_MAX, most = 0;
    struct lt_counts *counts = counts_of(t, key);
    for (int i = 0; i < ROUNDS; i++) {
        counters_of(t, key, 0)->sample_at = 0;
        counts->hold_sampled = 1000000000; /* the mean is 0 ticks */
        counts->hold_sampled_ticks = 0;
        take(t, key);
        release_with(t, key, 0);
        uint64_t gap = counters_of(t, key, 0)->sample_at - counts->acquisitions;
        gaps += gap;
        least = gap < least ? gap : least;
        most = gap > most ? gap : most;
    }
    uint64_t period = 50 * 5 * lt_clock.read_ticks / 45;
    period = period > 256 ? 256 : period;
    CHECK(least >= 1 && most <= 2 * period - 1);
    CHECK(most > period + period / 2 && least < period / 2);
    CHECK(gaps > ROUNDS * period * 8 / 10 && gaps < ROUNDS * period * 12 / 10);
}

static void waits_for_a_held_lock_are_charged_at_the_release(struct lt_thread *t)
{
    uint64_t unit = 1ull << lt_clock.wait_shift;
    for (int way = 0; way < 2; way++) {
        uint64_t key = key_number(21 + (uint64_t)way);
        take(t, key);
        struct lt_lock *lock = lock_find(key);
        uint64_t began = held_find(t, key)->since - 1000 * unit;
        held_find(t, key)->since = began;
        blame_wait_begins(lock, began);
        blame_wait_begins(lock, began);
        release_either(t, key, way);
        uint64_t due = charged(t, key);
        CHECK(due >= 2 * 999 * unit && due <= 2 * (lt_now() - began + unit));
        CHECK_EQUAL(lock->waits & WAITS_MASK, 2);
        lock->waits = 0;
    }
}

static struct lt_held *take_untimed(struct lt_thread *t, uint64_t key)
{
    take(t, key);
    struct lt_held *held = held_find(t, key);
    held->flags = 0;
    return held;
}

/* A hold of unknown length took as long as the mean of the timed ones, unless a wait began in it:
 * then the wait itself tells. */
static void an_untimed_hold_is_charged_its_mean(struct lt_thread *t)
{
    uint64_t unit = 1ull << lt_clock.wait_shift, key = key_number(23);
    take_untimed(t, key);
    struct lt_lock *lock = lock_find(key);
    counts_of(t, key)->hold_sampled = 4;
    counts_of(t, key)->hold_sampled_ticks = 4 * 10 * unit;
    uint64_t began = lt_now() - 100000 * unit;
    for (int i = 0; i < 3; i++)
        blame_wait_begins(lock, began);
    lock->waits &= ~(uint64_t)WAITS_NEW; /* the waits began before this hold */
    release_slowly(t, key, true);
    CHECK_EQUAL(charged(t, key), 3 * 10 * unit);
    lock->waits = 0;
    take_untimed(t, key);
    blame_wait_begins(lock, lt_now() - 100000 * unit); /* a new one */
    release_slowly(t, key, true);
    CHECK(charged(t, key) >= 3 * 10 * unit + 99999 * unit);
    lock->waits = 0;
}

static void an_untimed_hold_without_a_mean_is_charged_whole(struct lt_thread *t)
{
    uint64_t unit = 1ull << lt_clock.wait_shift, key = key_number(24);
    take_untimed(t, key);
    struct lt_lock *lock = lock_find(key);
    blame_wait_begins(lock, lt_now() - 100000 * unit);
    lock->waits &= ~(uint64_t)WAITS_NEW;
    release_slowly(t, key, true);
    CHECK(charged(t, key) >= 99999 * unit);
    lock->waits = 0;
}

/* The steps in between: each is done once, whoever calls it first. */
static void a_release_accounts_and_charges_once(struct lt_thread *t)
{
    uint64_t unit = 1ull << lt_clock.wait_shift, key = key_number(25);
    take(t, key);
    struct lt_lock *lock = lock_find(key);
    uint64_t began = held_find(t, key)->since -= 1000 * unit;
    blame_wait_begins(lock, began);
    struct release release;
    release_begin(t, key, &release);
    CHECK(release.due.ticks >= 999 * unit);
    release_account(t, &release);
    release_account(t, &release);
    CHECK_EQUAL(counts_of(t, key)->hold_sampled, 1);
    release_charge(t, &release);
    uint64_t due = charged(t, key);
    release_charge(t, &release);
    release_end(t, &release);
    CHECK_EQUAL(charged(t, key), due);
    CHECK_EQUAL(counts_of(t, key)->hold_sampled, 1);
    lock->waits = 0;
}

static void the_release_of_a_lock_that_is_not_listed_counts_nothing(struct lt_thread *t)
{
    uint64_t key = key_number(27), records = t->ring_head;
    uint32_t counters = t->counters_count;
    release_slowly(t, key, true);
    release_with(t, key, 0);
    CHECK_EQUAL(t->counters_count, counters);
    CHECK_EQUAL(t->ring_head, records);
    CHECK(!counters_find(t, key));
}

/* A forked child still has the parent's release on its stack. */
static void the_release_of_another_block_counts_nothing(struct lt_thread *t)
{
    uint64_t unit = 1ull << lt_clock.wait_shift, key = key_number(26);
    static struct lt_thread other;
    take(t, key);
    blame_wait_begins(lock_find(key), held_find(t, key)->since -= 1000 * unit);
    struct release release;
    release_begin(t, key, &release);
    release_account(&other, &release);
    release_undo(&other, &release);
    release_end(&other, &release);
    CHECK_EQUAL(counts_of(t, key)->hold_sampled, 0);
    CHECK_EQUAL(charged(t, key), 0);
    CHECK_EQUAL(other.held_top, 0);
    lock_find(key)->waits = 0;
}

static struct lt_thread stranger;

static int fork_meanwhile(void *result)
{
    lt_own.block = &stranger;
    return *(int *)result;
}

/* A signal handler forks during the real call: the child returns from it, too. */
static void a_release_in_a_forked_child_returns_the_result(struct lt_thread *t)
{
    for (int contended = 0; contended < 2; contended++) {
        uint64_t key = key_number(28 + (uint64_t)contended), records = t->ring_head;
        int result = 5;
        if (contended)
            take_contended(t, key);
        else
            take(t, key);
        CHECK_EQUAL(release_by(t, key, fork_meanwhile, &result), 5);
        lt_own.block = t;
        CHECK_EQUAL(t->ring_head, records);
        CHECK_EQUAL(counts_of(t, key)->hold_sampled, 0);
        CHECK_EQUAL(t->held_top, 0);
    }
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    a_plain_hold_is_counted_and_sampled(t);
    the_longest_hold_stays_the_longest(t);
    a_clock_that_goes_back_adds_nothing(t);
    a_contended_hold_is_recorded_with_its_wait(t);
    a_refused_release_lists_the_wait_again(t);
    a_recursive_lock_goes_level_by_level(t);
    deeper_than_the_depth_goes_a_second_entry(t);
    the_fast_release_leaves_the_rest_to_the_slow_one(t);
    a_reader_who_meets_a_writer_reads_the_clock(t);
    what_passes_is_recorded_at_the_level_all(t);
    every_hold_is_recorded_at_the_level_all(t);
    a_hold_that_met_a_waiter_is_recorded_at_the_level_blocks(t);
    the_next_hold_to_time_is_told_at_each_level(t);
    short_holds_are_timed_in_random_turns(t);
    waits_for_a_held_lock_are_charged_at_the_release(t);
    an_untimed_hold_is_charged_its_mean(t);
    an_untimed_hold_without_a_mean_is_charged_whole(t);
    a_release_accounts_and_charges_once(t);
    the_release_of_a_lock_that_is_not_listed_counts_nothing(t);
    the_release_of_another_block_counts_nothing(t);
    a_release_in_a_forked_child_returns_the_result(t);
    return 0;
}
