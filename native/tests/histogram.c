/* Tests of histograms: each wait and each timed hold is in exactly one bucket. */
#include "tables/histogram.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "account/brief_wait.h"
#include "account/wait.h"
#include "accounting.h"
#include "base/clock.h"
#include "check.h"
#include "holds.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "tables/lock_table.h"
#include "waits.h"

static uint64_t first_of(uint32_t bucket)
{
    return bucket < 4 ? bucket : (uint64_t)(4 + bucket % 4) << (bucket / 4 - 1);
}

static void buckets_follow_each_other(void)
{
    for (uint32_t bucket = 0; bucket < LT_BUCKETS; bucket++) {
        CHECK_EQUAL(bucket_of(first_of(bucket)), bucket);
        CHECK_EQUAL(bucket_of(first_of(bucket + 1) - 1), bucket); /* the last ends with 2^64 */
    }
}

static uint64_t line_part(uint64_t key)
{
    return key >> LT_LINE_PART_SHIFT & UINT8_MAX;
}

static uint32_t first_bucket(uint64_t key)
{
    return ((uint32_t)(key >> LT_LINE_NUMBER_SHIFT) - 1) * LT_LINE_BUCKETS;
}

/* The counts of a lock's buckets from `from` to before `to`. */
static uint64_t between(struct lt_thread *t, uint32_t lock, enum lt_line_part part, uint32_t from,
                        uint32_t to)
{
    uint64_t sum = 0;
    const struct lt_histogram_line *lines = shm_ptr(t->histograms.lines);
    for (uint32_t i = 0; i < t->histograms.capacity; i++) {
        uint64_t key = lines[i].key, carried = line_part(key) & LT_LINE_CARRY;
        if (!key || (uint32_t)key != lock || (line_part(key) & LT_LINE_HOLDS) != part)
            continue;
        for (uint32_t bucket = 0; bucket < LT_LINE_BUCKETS; bucket++)
            if (first_bucket(key) + bucket >= from && first_bucket(key) + bucket < to)
                sum += (uint64_t)lines[i].counts[bucket] << (carried ? LT_LINE_CARRY_BITS : 0);
    }
    return sum;
}

static uint64_t in_bucket(struct lt_thread *t, uint64_t key, enum lt_line_part part, uint64_t ticks)
{
    uint32_t bucket = bucket_of(ticks);
    return between(t, lock_id(key, 0), part, bucket, bucket + 1);
}

static uint64_t in_all(struct lt_thread *t, uint64_t key, enum lt_line_part part)
{
    return between(t, lock_id(key, 0), part, 0, LT_BUCKETS);
}

static void waits_are_counted_by_length(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_MUTEX, 1), lasts[] = {1000, 1001, 400, 3000000};
    for (int i = 0; i < 4; i++) {
        struct waiting w = wait_lasting(t, key, lasts[i]);
        wait_end_holding(&w, 0);
        drop(t, key);
    }
    CHECK_EQUAL(in_bucket(t, key, LT_LINE_WAITS, 1000), 2);
    CHECK_EQUAL(in_bucket(t, key, LT_LINE_WAITS, 400), 1);
    CHECK_EQUAL(in_bucket(t, key, LT_LINE_WAITS, 3000000), 1);
    CHECK_EQUAL(in_all(t, key, LT_LINE_WAITS), waits_counted(t, key)->contended);
    CHECK_EQUAL(in_all(t, key, LT_LINE_HOLDS), 0);
}

/* Waits that are no contended acquisition are in no histogram. */
static void a_wait_that_gave_up_is_left_out(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_MUTEX, 2);
    struct waiting w = wait_lasting(t, key, 700);
    wait_end_without(&w);
    w = wait_lasting(t, key, 700);
    wait_end_refused(&w);
    CHECK_EQUAL(waits_counted(t, key)->contended, 0);
    CHECK_EQUAL(in_all(t, key, LT_LINE_WAITS), 0);
}

static void each_kind_counts_its_own_waits(struct lt_thread *t)
{
    static const enum lt_kind kinds[] = {LT_KIND_SEM, LT_KIND_COND, LT_KIND_BARRIER, LT_KIND_JOIN};
    for (int i = 0; i < 4; i++) {
        uint64_t key = key_of(kinds[i], 3);
        struct waiting w = wait_lasting(t, key, 700);
        wait_end_done(&w);
        CHECK_EQUAL(in_bucket(t, key, LT_LINE_WAITS, 700), 1);
        CHECK_EQUAL(in_all(t, key, LT_LINE_WAITS), waits_counted(t, key)->contended);
    }
}

static void a_mutex_after_a_condition_wait(struct lt_thread *t)
{
    uint64_t mutex = key_of(LT_KIND_MUTEX, 4), condition = key_of(LT_KIND_COND, 4);
    struct waiting w = wait_lasting(t, condition, 700);
    wait_mutex_taken_back(&w, mutex, 0);
    wait_end_done(&w);
    drop(t, mutex);
    CHECK_EQUAL(in_all(t, mutex, LT_LINE_WAITS), 1);
    CHECK_EQUAL(in_bucket(t, condition, LT_LINE_WAITS, 700), 1);
}

static void brief_waits_are_counted(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_SPIN, 5);
    for (int i = 0; i < 50; i++) {
        struct wait_for what = {.key = key};
        brief_wait_begins(t, &what, &frames[MIDDLE]);
        brief_wait_ended(t, &what, lt_now(), 0, &frames[MIDDLE]);
        release_either(t, key, i % 2);
    }
    CHECK_EQUAL(waits_counted(t, key)->contended, 50);
    CHECK_EQUAL(in_all(t, key, LT_LINE_WAITS), 50);
    CHECK_EQUAL(in_all(t, key, LT_LINE_HOLDS),
                counts_of(t, key)->hold_sampled + waits_counted(t, key)->hold_contended);
}

static void timed_holds_are_counted(struct lt_thread *t)
{
    uint64_t key = key_number(6);
    for (int i = 0; i < 3000; i++) {
        if (i % 3)
            take(t, key);
        else
            take_contended(t, key);
        if (!released(t, key))
            release_either(t, key, i % 2);
    }
    const struct lt_counts *counts = counts_of(t, key);
    CHECK_EQUAL(waits_counted(t, key)->hold_contended, 1000);
    CHECK(counts->hold_sampled > 3); /* all 2000, if the machine makes a hold long */
    CHECK_EQUAL(in_all(t, key, LT_LINE_HOLDS), counts->hold_sampled + 1000);
    CHECK_EQUAL(in_bucket(t, key, LT_LINE_HOLDS, counts->hold_max) > 0, 1);
    CHECK_EQUAL(in_all(t, key, LT_LINE_WAITS), 0); /* take_contended() lists no wait */
}

static void a_count_may_be_large(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_MUTEX, 7);
    struct lt_lock_counters *counters = counters_of(t, key, 0);
    histogram_add(t, counters, LT_LINE_WAITS, 500);
    struct lt_histogram_line *lines = shm_ptr(t->histograms.lines);
    uint32_t slot = bucket_of(500) % LT_LINE_BUCKETS;
    for (uint32_t i = 0; i < t->histograms.capacity; i++)
        if ((uint32_t)lines[i].key == counters->lock)
            lines[i].counts[slot] = UINT32_MAX - 5;
    uint32_t seq = t->table_seq;
    for (int i = 0; i < 10; i++)
        histogram_add(t, counters, LT_LINE_WAITS, 500);
    CHECK(t->table_seq > seq && t->table_seq % 2 == 0);
    CHECK_EQUAL(in_bucket(t, key, LT_LINE_WAITS, 500), (uint64_t)UINT32_MAX + 5);
    CHECK_EQUAL(in_all(t, key, LT_LINE_WAITS), (uint64_t)UINT32_MAX + 5);
}

static uint64_t retired(uint64_t key, enum lt_line_part part, uint64_t ticks)
{
    const struct lt_retired *entry = array_at(&lt_shm->retired, lock_find(key)->retired - 1);
    for (uint32_t number = entry->lines; number;) {
        const struct lt_line_sum *line = array_at(&lt_shm->retired_lines, number - 1);
        uint32_t first = first_bucket(line->key), bucket = bucket_of(ticks);
        CHECK_EQUAL((uint32_t)line->key, entry->lock);
        if (line_part(line->key) == part && bucket >= first && bucket < first + LT_LINE_BUCKETS)
            return line->counts[bucket - first];
        number = line->next;
    }
    return 0;
}

static void retire(struct lt_thread *t, const struct lt_lock_counters *counters)
{
    lock_retire_counters(counters, waits_found(t, counters));
}

static void the_counts_of_ended_threads_stay(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_MUTEX, 1), large = key_of(LT_KIND_MUTEX, 7);
    for (uint64_t times = 1; times <= 2; times++) {
        retire(t, counters_of(t, key, 0));
        retire(t, counters_of(t, large, 0));
        histograms_retire(t);
        CHECK_EQUAL(retired(key, LT_LINE_WAITS, 1000), 2 * times);
        CHECK_EQUAL(retired(key, LT_LINE_WAITS, 3000000), times);
        CHECK_EQUAL(retired(large, LT_LINE_WAITS, 500), times * ((uint64_t)UINT32_MAX + 5));
    }
    CHECK_EQUAL(lt_shm->lines_left_out, 0);
    histograms_clear(t);
    CHECK_EQUAL(in_all(t, key, LT_LINE_WAITS), 0);
    CHECK_EQUAL(t->histograms.count, 0);
}

/* Uncontended locks leave room for those with waits. Counts without room are counted. */
static void a_thread_has_so_many_lines(struct lt_thread *t)
{
    for (uint64_t n = 0; n < 1000; n++)
        histogram_add(t, counters_of(t, key_number(1000 + n), 0), LT_LINE_HOLDS, 500);
    CHECK_EQUAL(t->histograms.count, 192);
    CHECK_EQUAL(t->histograms.left_out, 1000 - 192);
    for (uint64_t n = 0; n < 1000; n++) {
        struct lt_lock_counters *counters = counters_of_waited(t, key_number(1000 + n), 0);
        histogram_add(t, counters, LT_LINE_WAITS, 500);
        histogram_add(t, counters, LT_LINE_HOLDS, 500);
    }
    CHECK_EQUAL(t->histograms.capacity, 1024);
    CHECK_EQUAL(t->histograms.count, 768);
    uint64_t in_lines = 0;
    const struct lt_histogram_line *lines = shm_ptr(t->histograms.lines);
    for (uint32_t i = 0; i < t->histograms.capacity; i++)
        for (int bucket = 0; bucket < LT_LINE_BUCKETS; bucket++)
            in_lines += lines[i].counts[bucket];
    CHECK_EQUAL(in_lines + t->histograms.left_out, 3000);
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    buckets_follow_each_other();
    waits_are_counted_by_length(t);
    a_wait_that_gave_up_is_left_out(t);
    each_kind_counts_its_own_waits(t);
    a_mutex_after_a_condition_wait(t);
    brief_waits_are_counted(t);
    timed_holds_are_counted(t);
    a_count_may_be_large(t);
    the_counts_of_ended_threads_stay(t);
    a_thread_has_so_many_lines(t);
    return 0;
}
