/* Tests of wakeups: which sleepers a signal woke, and when. */
#include "account/wakeups.h"

#include <pthread.h>
#include <stdint.h>

#include "account/blame.h"
#include "base/clock.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "tables/lock_table.h"

enum { ALL = UINT32_MAX };
#define SLEEPERS_MASK ((1ull << LT_SLEEPERS_BITS) - 1)

static uint64_t unit;

static struct lt_condition with_mutex(uint64_t number, struct lt_lock **mutex)
{
    uint64_t key = lock_key(LT_KIND_MUTEX, (void *)(0x80000 + number * 64));
    uint32_t id = lock_id(key, 0);
    *mutex = array_at(&lt_shm->locks, id);
    return (struct lt_condition){.mutex = id};
}

static uint64_t sleepers(const struct lt_condition *condition)
{
    return condition->word & SLEEPERS_MASK;
}

static uint64_t woken(const struct lt_condition *condition)
{
    return condition->word >> LT_SLEEPERS_BITS & SLEEPERS_MASK;
}

static uint64_t round_now(const struct lt_condition *condition)
{
    return condition->word >> 2 * LT_SLEEPERS_BITS;
}

static uint64_t waiters(const struct lt_lock *mutex)
{
    return mutex->waits & WAITS_MASK;
}

static void a_signal_wakes_one_of_the_sleepers(void)
{
    struct lt_lock *mutex;
    struct lt_condition condition = with_mutex(1, &mutex);
    uint64_t round = wakeup_begin(&condition);
    CHECK_EQUAL(wakeup_begin(&condition), round);
    CHECK_EQUAL(wakeup_begin(&condition), round);
    CHECK_EQUAL(sleepers(&condition), 3);
    uint64_t before = lt_now();
    wakeup_signal(&condition, 1);
    uint64_t signalled = condition.signalled;
    CHECK(signalled >= before && signalled <= lt_now());
    CHECK_EQUAL(woken(&condition), 1);
    CHECK_EQUAL(waiters(mutex), 1); /* waits for the mutex from now on */
    CHECK(mutex->waits & WAITS_NEW);
    CHECK_EQUAL(wakeup_end(&condition, round, false), 0); /* one gives up: no signal woke it */
    CHECK_EQUAL(sleepers(&condition), 2);
    CHECK_EQUAL(woken(&condition), 1);
    CHECK_EQUAL(wakeup_end(&condition, round, true), signalled);
    CHECK_EQUAL(sleepers(&condition), 1);
    CHECK_EQUAL(woken(&condition), 0);
    CHECK_EQUAL(wakeup_end(&condition, round, true), 0); /* woken by another process */
    CHECK_EQUAL(sleepers(&condition), 0);
    CHECK_EQUAL(round_now(&condition), round);
    CHECK_EQUAL(waiters(mutex), 1);
}

static void a_broadcast_begins_a_new_round(void)
{
    struct lt_lock *mutex;
    struct lt_condition condition = with_mutex(2, &mutex);
    uint64_t first = wakeup_begin(&condition);
    wakeup_begin(&condition);
    wakeup_signal(&condition, ALL);
    CHECK_EQUAL(waiters(mutex), 2);
    CHECK_EQUAL(sleepers(&condition), 0);
    CHECK_EQUAL(woken(&condition), 0);
    CHECK_EQUAL(round_now(&condition), first + 1);
    uint64_t signalled = condition.signalled;
    uint64_t second = wakeup_begin(&condition); /* sleeps again, and is not woken yet */
    CHECK_EQUAL(second, first + 1);
    CHECK_EQUAL(wakeup_end(&condition, first, true), signalled);
    CHECK_EQUAL(wakeup_end(&condition, first, false), signalled); /* timed out in the same moment */
    CHECK_EQUAL(sleepers(&condition), 1);
    CHECK_EQUAL(wakeup_end(&condition, second, false), 0);
}

/* The last sleepers are woken one by one: a round ends then, too. */
static void signals_for_all_sleepers_are_as_a_broadcast(void)
{
    struct lt_lock *mutex;
    struct lt_condition condition = with_mutex(3, &mutex);
    uint64_t round = wakeup_begin(&condition);
    wakeup_begin(&condition);
    wakeup_begin(&condition);
    wakeup_signal(&condition, 2);
    CHECK_EQUAL(woken(&condition), 2);
    CHECK_EQUAL(round_now(&condition), round);
    wakeup_signal(&condition, 5);
    CHECK_EQUAL(waiters(mutex), 3);
    CHECK_EQUAL(round_now(&condition), round + 1);
    uint64_t signalled = condition.signalled;
    CHECK_EQUAL(condition.round_at[(round + 1) % LT_WAKE_ROUNDS], signalled);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(wakeup_end(&condition, round, true), signalled);
}

/* One leaves without a signal, and all who stay are woken. */
static void a_sleeper_that_leaves_may_end_the_round(void)
{
    struct lt_lock *mutex;
    struct lt_condition condition = with_mutex(4, &mutex);
    uint64_t round = wakeup_begin(&condition);
    wakeup_begin(&condition);
    wakeup_signal(&condition, 1);
    CHECK_EQUAL(round_now(&condition), round);
    uint64_t before = lt_now();
    CHECK_EQUAL(wakeup_end(&condition, round, false), 0);
    CHECK_EQUAL(round_now(&condition), round + 1);
    uint64_t began = condition.round_at[(round + 1) % LT_WAKE_ROUNDS];
    CHECK(began >= before && began <= lt_now());
    CHECK_EQUAL(wakeup_end(&condition, round, true), began);
}

static void a_signal_without_sleepers_wakes_nobody(void)
{
    struct lt_lock *mutex;
    struct lt_condition condition = with_mutex(5, &mutex);
    wakeup_signal(&condition, ALL);
    CHECK_EQUAL(condition.signalled, 0);
    CHECK_EQUAL(waiters(mutex), 0);
    uint64_t round = wakeup_begin(&condition);
    wakeup_begin(&condition);
    wakeup_signal(&condition, 1);
    wakeup_signal(&condition, 0);
    CHECK_EQUAL(waiters(mutex), 1);
    CHECK_EQUAL(woken(&condition), 1);
    wakeup_end(&condition, round, true);
    wakeup_end(&condition, round, true);
}

static void without_a_known_mutex_nothing_is_counted(void)
{
    struct lt_condition condition = {.mutex = 0};
    uint64_t round = wakeup_begin(&condition);
    wakeup_signal(&condition, ALL);
    CHECK_EQUAL(sleepers(&condition), 1);
    CHECK_EQUAL(round_now(&condition), round);
    CHECK(!wakeup_waited(&condition, lt_now() - 1000000, lt_now(), true));
}

/* Rounds are numbers modulo some power of two; a sleep may begin in the last one. */
static void rounds_begin_anew(void)
{
    struct lt_lock *mutex;
    struct lt_condition condition = with_mutex(6, &mutex);
    uint64_t last = UINT64_MAX >> 2 * LT_SLEEPERS_BITS;
    condition.word = last << 2 * LT_SLEEPERS_BITS;
    CHECK_EQUAL(wakeup_begin(&condition), last);
    wakeup_signal(&condition, ALL);
    CHECK_EQUAL(round_now(&condition), 0);
    CHECK_EQUAL(wakeup_end(&condition, last, true), condition.signalled);
}

/* A woken thread has waited for the mutex if a release was charged with some of its time. */
static void only_a_charged_time_is_a_wait(void)
{
    struct lt_lock *mutex;
    for (int alone = 0; alone < 2; alone++) {
        struct lt_condition condition = with_mutex(7 + (uint64_t)alone, &mutex);
        uint64_t now = lt_now(), since = now - 100000 * unit;
        blame_wait_begins(mutex, since, true);
        CHECK(!wakeup_waited(&condition, since, now, alone));
        CHECK_EQUAL(waiters(mutex), 0);
        blame_wait_begins(mutex, since, true);
        blame_take(condition.mutex, since + 400 * unit, 0, false);
        CHECK(wakeup_waited(&condition, since, now, alone));
        CHECK_EQUAL(waiters(mutex), 0);
        mutex->waits = 0;
    }
}

/* A thread that gave up leaves its time due. A thread that has the mutex clears what is due. */
static void the_mutex_of_one_who_gave_up_keeps_what_is_due(void)
{
    struct lt_lock *mutex;
    struct lt_condition condition = with_mutex(9, &mutex);
    uint64_t now = lt_now(), since = now - 1000 * unit;
    blame_wait_begins(mutex, since, true);
    wakeup_waited(&condition, since, now, false);
    uint64_t due = blame_take(condition.mutex, now + unit, 0, false).ticks;
    CHECK(due >= 999 * unit && due <= 1001 * unit);
    blame_wait_begins(mutex, since, true);
    wakeup_waited(&condition, since, now, true);
    CHECK_EQUAL(blame_take(condition.mutex, now + unit, 0, false).ticks, 0);
}

enum { SIGNALS = 10000 };

static void *signal_many(void *condition)
{
    for (int i = 0; i < SIGNALS; i++)
        wakeup_signal(condition, 1);
    return NULL;
}

/* Two threads signal at one time: each signal wakes one sleeper, who is one waiter. */
static void no_signal_among_threads_is_lost(void)
{
    struct lt_lock *mutex;
    struct lt_condition condition = with_mutex(10, &mutex);
    pthread_t threads[2];
    for (int i = 0; i < 2 * SIGNALS + 1; i++)
        wakeup_begin(&condition);
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, signal_many, &condition), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQUAL(woken(&condition), 2 * SIGNALS);
    CHECK_EQUAL(waiters(mutex), 2 * SIGNALS);
}

int main(void)
{
    CHECK(watched());
    unit = 1ull << lt_clock.wait_shift;
    a_signal_wakes_one_of_the_sleepers();
    a_broadcast_begins_a_new_round();
    signals_for_all_sleepers_are_as_a_broadcast();
    a_sleeper_that_leaves_may_end_the_round();
    a_signal_without_sleepers_wakes_nobody();
    without_a_known_mutex_nothing_is_counted();
    rounds_begin_anew();
    only_a_charged_time_is_a_wait();
    the_mutex_of_one_who_gave_up_keeps_what_is_due();
    no_signal_among_threads_is_lost();
    return 0;
}
