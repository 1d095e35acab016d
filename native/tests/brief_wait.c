/* Tests of brief waits: each one is counted, and its stack is taken for a sample. */
#include "account/brief_wait.h"

#include <stdint.h>

#include "account/hold.h"
#include "base/clock.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"
#include "shm/control.h"
#include "shm/segment.h"
#include "stack/capture.h"
#include "tables/held_list.h"
#include "tables/tables_state.h"
#include "tables/thread_table.h"

enum { WAITS = 1000, TICKS = 300 };

static int released_really;

static int unlock(void *lock)
{
    (void)lock;
    released_really++;
    return 0;
}

static uint64_t key(uint64_t number)
{
    return lock_key(LT_KIND_MUTEX, (void *)(uintptr_t)(0x20000 + 64 * number));
}

/* One brief wait and the release, each from a call site of its own. */
static __attribute__((noinline)) void wait_here(uint64_t number)
{
    struct lt_thread *t = watched();
    struct wait_for what = {.key = key(number), .holder = 77};
    brief_wait_begins(t, &what, FRAME());
    brief_wait_ended(t, &what, lt_now() - TICKS, 0, FRAME());
    if (!released(t, key(number)))
        CHECK_EQUAL(release_by(t, key(number), unlock, NULL), 0);
    CHECK_EQUAL(t->held_top, 0);
}

static __attribute__((noinline)) void wait_there(uint64_t number)
{
    wait_here(number);
    __asm__ volatile(""); /* a call, not a jump */
}

static struct lt_waits *waits(uint64_t number)
{
    struct lt_thread *t = watched();
    return waits_of(t, counters_of(t, key(number), 0));
}

struct sums {
    uint64_t count, ticks, stacks;
};

static struct sums sums_of(uint64_t number)
{
    struct lt_thread *t = watched();
    uint32_t id = counters_of(t, key(number), 0)->lock;
    struct sums sums = {0};
    for (uint32_t i = 0; i < t->site_capacity; i++) {
        const struct lt_site *site = &tables_state(t)->sites[i];
        if (site->count && site->lock == id) {
            CHECK(site->stack != 0);
            sums.count += site->count;
            sums.ticks += site->wait_ticks;
            sums.stacks++;
        }
    }
    return sums;
}

static void every_wait_is_counted(void)
{
    struct lt_thread *t = watched();
    uint64_t records = t->ring_head, begin = lt_now();
    for (int i = 0; i < WAITS; i++)
        wait_here(1);
    CHECK(waits(1)->wait_max <= TICKS + lt_now() - begin);
    struct lt_lock_counters *counters = counters_of(t, key(1), 0);
    struct sums sums = sums_of(1);
    CHECK_EQUAL(counters->counts.acquisitions, WAITS);
    CHECK_EQUAL(waits(1)->contended, WAITS);
    CHECK_EQUAL(sums.count, WAITS);
    CHECK_EQUAL(sums.ticks, waits(1)->wait_ticks);
    CHECK_EQUAL(sums.stacks, 1);
    CHECK(waits(1)->wait_ticks >= (uint64_t)WAITS * TICKS);
    CHECK(waits(1)->wait_max >= TICKS);
    uint64_t samples = t->ring_head - records;
    CHECK(samples > 10 && samples < WAITS / 5);
    CHECK_EQUAL(waits(1)->hold_contended, samples);
    CHECK(counters->counts.hold_sampled > 0); /* the other holds are timed as uncontended ones */
}

static void the_stacks_of_two_callers_stay_apart(void)
{
    for (int i = 0; i < WAITS; i++) {
        wait_here(2);
        wait_there(2);
    }
    struct sums sums = sums_of(2);
    CHECK_EQUAL(waits(2)->contended, 2 * WAITS);
    CHECK_EQUAL(sums.count, 2 * WAITS);
    CHECK_EQUAL(sums.stacks, 2);
}

static void many_locks_at_one_call_site(void)
{
    enum { LOCKS = 40 };
    for (int round = 0; round < 5; round++)
        for (uint64_t number = 10; number < 10 + LOCKS; number++)
            wait_here(number);
    for (uint64_t number = 10; number < 10 + LOCKS; number++) {
        CHECK_EQUAL(waits(number)->contended, 5);
        CHECK_EQUAL(sums_of(number).count, 5);
    }
}

static struct lt_held *take_here(uint64_t number, uint32_t *stack)
{
    struct lt_thread *t = watched();
    struct wait_for what = {.key = key(number), .holder = 77};
    brief_wait_begins(t, &what, FRAME());
    brief_wait_ended(t, &what, lt_now() - TICKS, 0, FRAME());
    *stack = what.stack;
    return held_find(t, key(number));
}

/* Else short programs would have no stack. Locks at one call site may share an entry. */
static void the_first_two_waits_for_a_lock_are_samples(void)
{
    struct lt_thread *t = watched();
    for (uint64_t number = 100; number < 140; number++)
        for (int i = 0; i < 2; i++) {
            uint32_t stack;
            const struct lt_held *held = take_here(number, &stack);
            CHECK(stack);
            CHECK_EQUAL(held->flags, LT_HELD_TIMED | LT_HELD_CONTENDED);
            CHECK_EQUAL(held->stack, stack);
            CHECK_EQUAL(held->holder, 77);
            CHECK(held->wait_ticks >= TICKS);
            CHECK_EQUAL(held->since, held->wait_start + held->wait_ticks);
            CHECK_EQUAL(release_by(t, key(number), unlock, NULL), 0);
        }
}

/* Clocks of two processors may differ. */
static void a_clock_that_goes_back_adds_nothing(void)
{
    struct lt_thread *t = watched();
    struct wait_for what = {.key = key(200)};
    brief_wait_begins(t, &what, FRAME());
    brief_wait_ended(t, &what, lt_now() + 1000000000, 0, FRAME());
    CHECK_EQUAL(waits(200)->contended, 1);
    CHECK_EQUAL(waits(200)->wait_ticks, 0);
    held_forget(t, key(200));
}

/* The hooks will not see the release. */
static void a_wait_that_ends_dormant_counts_nothing(void)
{
    struct lt_thread *t = watched();
    uint32_t mode = lt_control.page.mode;
    struct wait_for what = {.key = key(201)};
    brief_wait_begins(t, &what, FRAME());
    lt_control.page.mode = (mode & ~(uint32_t)LEVEL_MASK) | LT_LEVEL_DORMANT;
    brief_wait_ended(t, &what, lt_now() - TICKS, 0, FRAME());
    lt_control.page.mode = mode;
    CHECK(watched() == t);
    CHECK_EQUAL(waits(201)->contended, 0);
    CHECK(!held_find(t, key(201)));
}

static void higher_levels_record_each_wait(void)
{
    struct lt_thread *t = watched();
    uint32_t mode = lt_control.page.mode;
    lt_control.page.mode = (mode & ~(uint32_t)LEVEL_MASK) | LT_LEVEL_BLOCKS;
    uint64_t records = t->ring_head;
    for (int i = 0; i < WAITS; i++)
        wait_here(3);
    CHECK_EQUAL(t->ring_head - records, WAITS);
    CHECK_EQUAL(waits(3)->contended, WAITS);
    CHECK_EQUAL(sums_of(3).count, WAITS);
    lt_control.page.mode = mode;
    CHECK(watched() == t);
}

static void the_lowest_level_counts_alone(void)
{
    struct lt_thread *t = watched();
    uint32_t mode = lt_control.page.mode;
    lt_control.page.mode = (mode & ~(uint32_t)LEVEL_MASK) | LT_LEVEL_COUNTING;
    uint32_t stack;
    take_here(4, &stack);
    CHECK(!stack);
    CHECK_EQUAL(release_by(t, key(4), unlock, NULL), 0);
    CHECK_EQUAL(waits(4)->contended, 1);
    CHECK_EQUAL(sums_of(4).count, 0);
    lt_control.page.mode = mode;
    CHECK(watched() == t);
}

int main(void)
{
    CHECK(watched() != NULL);
    every_wait_is_counted();
    the_stacks_of_two_callers_stay_apart();
    many_locks_at_one_call_site();
    the_first_two_waits_for_a_lock_are_samples();
    a_clock_that_goes_back_adds_nothing();
    a_wait_that_ends_dormant_counts_nothing();
    higher_levels_record_each_wait();
    the_lowest_level_counts_alone();
    CHECK(released_really > 0);
    return 0;
}
