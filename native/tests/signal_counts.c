/* Tests of posts and signals: none is lost. They are counted in the thread's table if there is
 * room, else in the lock table. */
#include "account/signal_counts.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "account/hold.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"
#include "order/lock_life.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "tables/lock_table.h"
#include "tables/thread_table.h"

enum { MANY = 1000 };

static uint64_t key_number(uint64_t n)
{
    return lock_key(LT_KIND_SEM, (void *)(0x30000 + n * sizeof(uint64_t)));
}

/* Counts as the hooks do. */
static struct lt_counts *signal_now(uint64_t key)
{
    struct lt_counts *counts = signal_counts_of(key, current_mode());
    if (!counts)
        return signal_count_slowly(key, current_mode());
    bool unheld = is_unheld(counts, key);
    signal_count_once(&counts->signals);
    if (unheld)
        signal_note_unheld(counts, key);
    return counts;
}

static uint64_t in_table(uint64_t key)
{
    const struct lt_lock_counters *counters = counters_find(lt_own.block, key);
    return counters ? counters->counts.signals : 0;
}

static uint64_t beside(uint64_t key)
{
    const struct lt_lock *lock = lock_find(key);
    if (!lock || !lock->retired)
        return 0;
    const struct lt_retired *retired = array_at(&lt_shm->retired, lock->retired - 1);
    CHECK_EQUAL(retired->kind, LT_KIND_SEM);
    CHECK(array_at(&lt_shm->locks, retired->lock) == lock);
    return retired->counts.signals;
}

static void in_the_table(void)
{
    uint64_t key = key_number(0);
    for (int i = 0; i < 5; i++)
        CHECK_EQUAL(signal_undo_if(0, signal_now(key)), 0);
    CHECK_EQUAL(in_table(key), 5);
    CHECK_EQUAL(signal_undo_if(-1, signal_now(key)), -1);
    CHECK_EQUAL(in_table(key), 5);
    CHECK_EQUAL(beside(key), 0);
}

/* As a signal handler that interrupts the library at work: for a known lock, and for a new one. */
static void in_the_midst(struct lt_thread *t)
{
    uint32_t mode = thread_busy(t);
    for (uint64_t n = 0; n < 2; n++)
        for (int i = 0; i < 3; i++)
            signal_now(key_number(n));
    signal_undo_if(-1, signal_now(key_number(1)));
    thread_ready(t, mode);
    CHECK_EQUAL(in_table(key_number(0)), 5);
    CHECK_EQUAL(in_table(key_number(1)), 0);
    CHECK_EQUAL(beside(key_number(0)), 3);
    CHECK_EQUAL(beside(key_number(1)), 3);
}

/* A thread that has not seen the new level yet counts all the same. The thread sees the level at
 * its next lock. */
static void at_another_level(void)
{
    uint32_t before = lt_own.mode;
    lt_control.page.mode = (1u << 8) | LT_LEVEL_BLOCKS;
    CHECK(lt_control.page.mode != before);
    signal_now(key_number(0));
    CHECK_EQUAL(lt_own.mode, before);
    CHECK_EQUAL(in_table(key_number(0)), 6);
}

/* The table does not move. */
static void of_many(struct lt_thread *t)
{
    uint32_t capacity = t->counters_capacity;
    for (uint64_t round = 0; round < 2; round++)
        for (uint64_t n = 0; n < MANY; n++)
            signal_now(key_number(10 + n));
    CHECK_EQUAL(t->counters_capacity, capacity);
    /* the rest of the table is for locks that are waited for */
    CHECK(t->counters_count <= capacity / 2);
    for (uint64_t n = 0; n < MANY; n++)
        CHECK_EQUAL(in_table(key_number(10 + n)) + beside(key_number(10 + n)), 2);
    CHECK(in_table(key_number(10)) && beside(key_number(9 + MANY)));
    for (uint64_t n = 0; n < MANY; n++) /* as a wait does, with room for more */
        counters_of(t, key_number(10 + n), 0)->counts.acquisitions++;
    for (uint64_t n = 0; n < MANY; n++) {
        signal_now(key_number(10 + n));
        CHECK_EQUAL(in_table(key_number(10 + n)) + beside(key_number(10 + n)), 3);
        CHECK(in_table(key_number(10 + n)));
    }
}

static void *by_a_stranger(void *argument)
{
    for (int i = 0; i < MANY; i++)
        signal_now(key_number(2));
    CHECK(!lt_own.block);
    return argument;
}

/* Threads without a block of their own, several at once. */
static void by_threads_without_a_block(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, by_a_stranger, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_EQUAL(beside(key_number(2)), 4 * MANY);
}

static uint32_t threads_without_it(uint64_t key)
{
    const struct lt_lock *lock = lock_find(key);
    return lock ? lock->foreign_releases : 0;
}

/* Each thread that posts a semaphore it has not got is noted, once in each life. */
static void not_held(struct lt_thread *t)
{
    uint64_t key = key_number(3), cond = lock_key(LT_KIND_COND, (void *)0x20000);
    for (int i = 0; i < 3; i++) {
        sem_passed(t, key, NULL);
        signal_now(key);
    }
    CHECK_EQUAL(threads_without_it(key), 0);
    for (int i = 0; i < 3; i++)
        signal_now(key);
    CHECK_EQUAL(threads_without_it(key), 1);
    signal_now(cond);
    CHECK_EQUAL(threads_without_it(cond), 0);
}

static void in_the_midst_is_not_held(struct lt_thread *t)
{
    uint64_t key = key_number(5);
    uint32_t mode = thread_busy(t);
    signal_now(key);
    signal_now(key);
    thread_ready(t, mode);
    CHECK_EQUAL(threads_without_it(key), 1);
}

static uint64_t life_of(const struct lt_counts *counts)
{
    return counts->life >> 1;
}

/* Acquisitions and posts of the present life. */
static void check_life(const struct lt_counts *counts, uint32_t acquisitions, uint32_t posts)
{
    CHECK_EQUAL((uint32_t)(counts->acquisitions - counts->before), acquisitions);
    CHECK_EQUAL((uint32_t)(counts->signals - (counts->before >> 32)), posts);
}

/* The counts of a former semaphore at the address say nothing of the next one. */
static void of_each_life(struct lt_thread *t)
{
    uint64_t key = key_number(6);
    lock_life_begins(key, 2, NULL); /* nothing is known of the address yet */
    sem_passed(t, key, NULL);
    sem_passed(t, key, NULL);
    struct lt_counts *counts = &counters_find(t, key)->counts;
    check_life(counts, 2, 0);
    signal_now(key); /* this thread is still one ahead */
    lock_life_ends(key);
    lock_life_begins(key, 2, NULL);
    signal_now(key); /* the former unit is not a unit of this semaphore */
    CHECK_EQUAL(threads_without_it(key), 1);
    CHECK_EQUAL(life_of(counts), 1);
    check_life(counts, 0, 1);
    lock_life_ends(key);
    lock_life_begins(key, 2, NULL);
    CHECK_EQUAL(threads_without_it(key), 0);
    for (int i = 0; i < 100; i++) {
        sem_passed(t, key, NULL);
        signal_now(key);
    }
    CHECK_EQUAL(threads_without_it(key), 0);
    CHECK_EQUAL(life_of(counts), 2);
    check_life(counts, 100, 100);
    CHECK_EQUAL(counts->acquisitions, 102);
    signal_now(key);
    CHECK_EQUAL(threads_without_it(key), 1);
    lock_life_begins(key, 2, NULL); /* without an end, too */
    sem_life_check(t, key);         /* as a wait does */
    counters_find(t, key)->counts.acquisitions++;
    check_life(counts, 1, 0);
    signal_now(key);
    CHECK_EQUAL(threads_without_it(key), 0);
    check_life(counts, 1, 1);
}

/* A level that times the next holds leaves the counters of semaphores alone. */
static void at_a_new_level(struct lt_thread *t)
{
    uint64_t key = key_number(6);
    counters_time_next_hold(t);
    sem_passed(t, key, NULL);
    check_life(&counters_find(t, key)->counts, 2, 1);
}

static const struct lt_counts *retired_counts(uint64_t key)
{
    const struct lt_retired *retired = array_at(&lt_shm->retired, lock_find(key)->retired - 1);
    return &retired->counts;
}

/* The sums of ended threads keep the present life apart, too. */
static void of_threads_ended_in_each_life(struct lt_thread *t)
{
    uint64_t key = key_number(7);
    struct lt_lock_counters copy;
    sem_passed(t, key, NULL);
    signal_now(key);
    sem_passed(t, key, NULL);
    copy = *counters_find(t, key);
    lock_retire_counters(&copy, waits_found(t, &copy)); /* ended in the first life */
    check_life(retired_counts(key), 2, 1);
    lock_life_begins(key, 2, NULL);
    lock_retire_counters(&copy, waits_found(t, &copy)); /* never used the second one */
    CHECK_EQUAL(retired_counts(key)->acquisitions, 4);
    CHECK_EQUAL(retired_counts(key)->signals, 2);
    check_life(retired_counts(key), 0, 0);
    for (int i = 0; i < 3; i++)
        sem_passed(t, key, NULL);
    signal_now(key);
    copy = *counters_find(t, key);
    lock_retire_counters(&copy, waits_found(t, &copy));
    lock_retire_counters(&copy, waits_found(t, &copy));
    check_life(retired_counts(key), 6, 2);
    CHECK_EQUAL(life_of(retired_counts(key)), 1);
    CHECK_EQUAL(retired_counts(key)->acquisitions, 4 + 2 * 5);
}

static void of_an_ended_thread(struct lt_thread *t)
{
    uint64_t before = beside(key_number(0));
    const struct lt_lock_counters *counters = counters_of(t, key_number(0), 0);
    lock_retire_counters(counters, waits_found(t, counters));
    CHECK_EQUAL(beside(key_number(0)), before + 6);
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    in_the_table();
    in_the_midst(t);
    at_another_level();
    of_many(t);
    by_threads_without_a_block();
    not_held(t);
    in_the_midst_is_not_held(t);
    of_each_life(t);
    at_a_new_level(t);
    of_threads_ended_in_each_life(t);
    of_an_ended_thread(t);
    return 0;
}
