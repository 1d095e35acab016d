/* Tests of holds: what an acquisition lists, and what a release counts. */
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
    blame_wait_begins(lock_find(key), lt_now(), true);
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

/* Timing takes at most 2 %, so only some of the short holds are timed. The choice is random. */
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
    uint64_t unit = wait_unit(), key = key_number(26);
    static struct lt_thread other;
    take(t, key);
    blame_wait_begins(lock_find(key), held_find(t, key)->since -= 1000 * unit, true);
    struct release release;
    release_begin(t, key, &release);
    release_account(&other, &release);
    release_undo(&other, &release);
    release_end(&other, &release);
    CHECK_EQUAL(counts_of(t, key)->hold_sampled, 0);
    CHECK_EQUAL(charged(t, key, 0), 0);
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
    a_refused_release_lists_the_wait_again(t);
    a_recursive_lock_goes_level_by_level(t);
    deeper_than_the_depth_goes_a_second_entry(t);
    the_fast_release_leaves_the_rest_to_the_slow_one(t);
    a_reader_who_meets_a_writer_reads_the_clock(t);
    short_holds_are_timed_in_random_turns(t);
    the_release_of_a_lock_that_is_not_listed_counts_nothing(t);
    the_release_of_another_block_counts_nothing(t);
    a_release_in_a_forked_child_returns_the_result(t);
    return 0;
}
