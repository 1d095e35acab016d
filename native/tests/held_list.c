/* Tests of the held list: releases in any order, growth, and releases by threads that do not hold
 * the lock. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "account/hold.h"
#include "base/clock.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"
#include "order/lock_life.h"
#include "shm/segment.h"
#include "tables/held_list.h"
#include "tables/lock_table.h"
#include "tables/tables_state.h"
#include "tables/thread_table.h"

static uint64_t key_number(uint64_t n)
{
    return lock_key(LT_KIND_MUTEX, (void *)(0x20000 + n * 40));
}

static void give_back(struct lt_thread *t, uint64_t key, bool expected)
{
    if (released(t, key)) {
        CHECK(expected);
        return;
    }
    struct release release;
    release_begin(t, key, &release);
    release_end(t, &release);
    CHECK_EQUAL(release.listed, expected);
}

static uint64_t held_count(const struct lt_thread *t)
{
    return t->held_top / sizeof(struct lt_held);
}

static void any_order(struct lt_thread *t)
{
    for (uint64_t n = 0; n < 5; n++)
        acquired(t, key_number(n), 0, (void *)(uintptr_t)(n + 1), 0);
    CHECK_EQUAL(held_count(t), 5);
    give_back(t, key_number(2), true); /* from the middle: the order of the others stays */
    const uint64_t left[] = {0, 1, 3, 4};
    const struct lt_held *list = shm_ptr(t->held);
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(list[i].key, key_number(left[i]));
        CHECK_EQUAL(list[i].site, left[i] + 1);
        CHECK(list[i].lock);
    }
    give_back(t, key_number(0), true);
    give_back(t, key_number(4), true);
    give_back(t, key_number(1), true);
    give_back(t, key_number(3), true);
    CHECK_EQUAL(held_count(t), 0);
    give_back(t, key_number(3), false);
    CHECK_EQUAL(held_count(t), 0);
}

/* As when a signal handler forks between the two steps of a release. The child, which shares the
 * list, removes the entry first. */
static void removed_twice(struct lt_thread *t)
{
    acquired(t, key_number(0), 0, NULL, 0);
    struct lt_held *held = held_find(t, key_number(0));
    held_remove(t, held);
    held_remove(t, held);
    CHECK_EQUAL(held_count(t), 0);
}

static void grows(struct lt_thread *t)
{
    enum { MANY = 3 * LT_HELD_INLINE };
    for (uint64_t n = 0; n < MANY; n++)
        acquired(t, key_number(n), 0, NULL, 0);
    CHECK_EQUAL(held_count(t), MANY);
    CHECK(t->held_size >= t->held_top);
    const struct lt_held *list = shm_ptr(t->held); /* as a reader finds it */
    for (uint64_t n = 0; n < MANY; n++)
        CHECK_EQUAL(list[n].key, key_number(n));
    for (uint64_t n = 0; n < MANY; n++)
        give_back(t, key_number(n), true);
    CHECK_EQUAL(held_count(t), 0);
    CHECK_EQUAL(t->held_lost, 0);
}

/* As in a program that locks all of a large table and releases in the same order, or from within.
 * The program does so again and again in the same room. */
/* Another thread may still read a list that was outgrown, to find out who holds a lock. If the
 * list's pages had gone back, the read would take new ones. Without free pages that is a SIGBUS. */
static void an_outgrown_list_can_be_read(struct lt_thread *t)
{
    uint64_t n = 0, offset = t->held;
    do {
        const struct lt_held *list = shm_ptr(offset);
        uint32_t size = t->held_size;
        while (t->held == offset)
            acquired(t, key_number(n++), 0, NULL, 0);
        for (uint32_t i = 0; i < size / sizeof *list; i++)
            CHECK(list[i].key == key_number(i));
        offset = t->held;
    } while (t->held_size < 4 * LT_PAGE);
    while (n-- > 0)
        give_back(t, key_number(n), true);
}

static void many_in_any_order(struct lt_thread *t)
{
    enum { LOCKS = 3000, ROUNDS = 6 };
    static bool held[LOCKS];
    uint32_t room = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (uint64_t n = 0; n < LOCKS; n++) {
            acquired(t, key_number(5000 + n), 0, (void *)(uintptr_t)(n + 1), 0);
            held[n] = true;
        }
        const uint64_t step = round % 2 ? 1 : 7; /* LOCKS has no factor 7: each lock comes once */
        for (uint64_t i = 0; i < LOCKS; i++) {
            uint64_t given = i * step % LOCKS, index = 0;
            held[given] = false;
            give_back(t, key_number(5000 + given), true);
            CHECK_EQUAL(held_count(t), LOCKS - 1 - i);
            if (i % 500)
                continue;
            const struct lt_held *list = shm_ptr(t->held);
            for (uint64_t n = 0; n < LOCKS; n++)
                if (held[n]) {
                    CHECK_EQUAL(list[index].key, key_number(5000 + n));
                    CHECK_EQUAL(list[index++].site, n + 1);
                }
        }
        uint32_t now = t->held_size + tables_state(t)->held_before;
        CHECK(round < 2 || now == room);
        room = now;
    }
    CHECK_EQUAL(t->held_lost, 0);
}

static void recursive_levels(struct lt_thread *t)
{
    acquired(t, key_number(0), 0, NULL, 0);
    held_find(t, key_number(0))->depth = 2;
    give_back(t, key_number(0), false);
    give_back(t, key_number(0), false);
    CHECK_EQUAL(held_count(t), 1);
    give_back(t, key_number(0), true);
    CHECK_EQUAL(held_count(t), 0);
}

/* A release that failed leaves everything as it was. */
static void undone_release(struct lt_thread *t)
{
    acquired(t, key_number(0), 0, (void *)0x77, 0);
    struct lt_held before = *held_find(t, key_number(0));
    struct release release;
    release_begin(t, key_number(0), &release);
    CHECK_EQUAL(held_count(t), 0);
    release_undo(t, &release);
    CHECK_EQUAL(held_count(t), 1);
    const struct lt_held *after = held_find(t, key_number(0));
    CHECK(after->since == before.since && after->flags == before.flags && after->site == 0x77);
    give_back(t, key_number(0), true);
}

static int refuse(void *times)
{
    ++*(int *)times;
    return 1;
}

static int agree(void *times)
{
    ++*(int *)times;
    return 0;
}

/* A real unlock that refuses leaves the lock listed, whatever is to be recorded. A real unlock that
 * succeeds is recorded once. */
static void refused_at_each_level(struct lt_thread *t)
{
    uint32_t mode = lt_control.page.mode;
    for (uint32_t level = LT_LEVEL_COUNTING; level <= LT_LEVEL_ALL; level++) {
        uint64_t key = key_number(6000 + level);
        lt_control.page.mode = (mode & ~(uint32_t)LEVEL_MASK) | level;
        CHECK(watched() == t);
        acquired(t, key, 0, (void *)0x77, 0);
        struct lt_held before = *held_find(t, key);
        uint64_t records = t->ring_head;
        int times = 0;
        CHECK_EQUAL(release_by(t, key, refuse, &times), 1);
        CHECK_EQUAL(held_count(t), 1);
        const struct lt_held *after = held_find(t, key);
        CHECK(after->since == before.since && after->lock == before.lock && after->site == 0x77);
        CHECK_EQUAL(t->ring_head, records);
        CHECK_EQUAL(counters_of(t, key, 0)->counts.hold_sampled, 0);
        CHECK_EQUAL(release_by(t, key, agree, &times), 0);
        CHECK_EQUAL(times, 2);
        CHECK_EQUAL(held_count(t), 0);
        acquired(t, key, 0, (void *)0x77, 0);
        CHECK_EQUAL(release_by(t, key, agree, &times), 0);
        CHECK_EQUAL(t->ring_head - records, level == LT_LEVEL_ALL);
        CHECK_EQUAL(counters_of(t, key, 0)->counts.acquisitions, 2);
        CHECK_EQUAL(counters_of(t, key, 0)->counts.hold_sampled, 2);
    }
    lt_control.page.mode = mode;
    CHECK(watched() == t);
}

/* Every hold is timed or not, never half; long holds are always timed. */
static void long_holds_are_all_timed(struct lt_thread *t)
{
    uint64_t key = key_number(1000);
    for (int i = 0; i < 20; i++) {
        acquired(t, key, 0, NULL, 0);
        for (volatile int spin = 0; spin < 200000; spin++)
            ;
        give_back(t, key, true);
    }
    const struct lt_counts *counts = &counters_of(t, key, 0)->counts;
    CHECK_EQUAL(counts->acquisitions, 20);
    CHECK_EQUAL(counts->hold_sampled, 20);
    CHECK(counts->hold_sampled_ticks >= counts->hold_max);
}

/* Many holds of 20 ticks come before, so that no other work of this machine makes the mean long. */
static void short_holds_are_sampled(struct lt_thread *t)
{
    enum { ROUNDS = 200000 };
    const uint64_t before = 1000000000000;
    uint64_t key = key_number(1001);
    struct lt_counts *counts = &counters_of(t, key, 0)->counts;
    counts->hold_sampled = before;
    counts->hold_sampled_ticks = before * 20;
    for (int i = 0; i < ROUNDS; i++) {
        acquired(t, key, 0, NULL, 0);
        give_back(t, key, true);
    }
    CHECK_EQUAL(counts->acquisitions, ROUNDS);
    CHECK(counts->hold_sampled > before && counts->hold_sampled < before + ROUNDS / 4);
}

/* A contended acquisition counts too, and may step over the acquisition that was to be timed. */
static void a_missed_sample_is_made_up_for(struct lt_thread *t)
{
    uint64_t key = key_number(1002);
    acquired(t, key, 0, NULL, 0);
    give_back(t, key, true);
    struct lt_lock_counters *counters = counters_of(t, key, 0);
    counters->counts.acquisitions = counters->sample_at;
    acquired(t, key, 0, NULL, 0);
    CHECK(held_find(t, key)->flags & LT_HELD_TIMED);
    give_back(t, key, true);
    CHECK(counters->sample_at > counters->counts.acquisitions);
}

static void *stale_holder(void *barrier)
{
    acquired(watched(), key_number(2000), 0, NULL, 0);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    held_forget(watched(), key_number(2000)); /* the mutex's next release would do that */
    return NULL;
}

/* Another thread releases what this thread lists: the lock then says that lists may be stale. */
static void foreign_release(struct lt_thread *t)
{
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, stale_holder, &barrier) == 0);
    pthread_barrier_wait(&barrier);
    CHECK_EQUAL(lock_find(key_number(2000))->foreign_releases, 0);
    give_back(t, key_number(2000), false);
    CHECK_EQUAL(lock_find(key_number(2000))->foreign_releases, 1);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    /* A mutex that is always handed over does not fill the list of the thread that takes it. */
    for (int i = 0; i < 100000; i++)
        acquired(t, key_number(2000), 0, NULL, 0);
    CHECK(t->held_size <= sizeof t->held_inline * 8);
    CHECK_EQUAL(t->held_lost, 0);
    /* The lock's next life begins without the suspicion, once no thread lists the lock. */
    held_forget(t, key_number(2000));
    lock_life_begins(key_number(2000), 0, NULL);
    CHECK_EQUAL(lock_find(key_number(2000))->foreign_releases, 0);
}

static void *stays_stale(void *barrier)
{
    acquired(watched(), key_number(2001), 0, NULL, 0);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    return NULL;
}

/* A list still names a lock of the life before: the new life keeps the suspicion. */
static void foreign_release_remembered(struct lt_thread *t)
{
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, stays_stale, &barrier) == 0);
    pthread_barrier_wait(&barrier);
    give_back(t, key_number(2001), false);
    lock_life_begins(key_number(2001), 0, NULL);
    CHECK_EQUAL(lock_find(key_number(2001))->foreign_releases, 1);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
}

/* A reader that died leaves the level as it set it; the program goes back without a wait. */
static void a_claim_lapses_without_contention(struct lt_thread *t)
{
    enum { ENOUGH = 4096 }; /* acquisitions, so that one of them is timed */
    struct lt_control *control = &lt_control.page;
    uint64_t key = key_number(3000);
    control->base_level = LT_LEVEL_COUNTING;
    control->claim_pid = 1;
    control->claim_ticks = lt_now();
    for (int i = 0; i < ENOUGH; i++) {
        acquired(t, key, 0, NULL, 0);
        give_back(t, key, true);
    }
    CHECK_EQUAL(control->claim_pid, 1); /* the claim was renewed a moment ago */
    control->claim_ticks = 0;
    for (int i = 0; i < ENOUGH; i++) {
        acquired(t, key, 0, NULL, 0);
        give_back(t, key, true);
    }
    CHECK_EQUAL(control->claim_pid, 0);
    CHECK_EQUAL(control->mode & LEVEL_MASK, LT_LEVEL_COUNTING);
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    any_order(t);
    removed_twice(t);
    an_outgrown_list_can_be_read(t);
    grows(t);
    recursive_levels(t);
    undone_release(t);
    refused_at_each_level(t);
    long_holds_are_all_timed(t);
    short_holds_are_sampled(t);
    a_missed_sample_is_made_up_for(t);
    foreign_release(t);
    foreign_release_remembered(t);
    a_claim_lapses_without_contention(t); /* last: it ends the epoch */
    many_in_any_order(t);
    return 0;
}
