/* Tests of blame: the word that collects a lock's waits, compared with sums made one by one. */
#include "account/blame.h"

#include <pthread.h>
#include <stdint.h>

#include "account/hold.h"
#include "account/wait.h"
#include "base/clock.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "tables/held_list.h"
#include "tables/lock_table.h"

static uint64_t unit, base;
static uint32_t id;
static struct lt_lock *lock;

static void fresh_lock(uint64_t number)
{
    id = lock_id(lock_key(LT_KIND_MUTEX, (void *)(0x10000 + number * 64)), 0);
    lock = array_at(&lt_shm->locks, id);
    CHECK_EQUAL(lock->waits & ~(uint64_t)WAITS_NEW, 0);
}

static uint64_t ticks_at(uint64_t units)
{
    return base + units * unit;
}

static void take(uint64_t now, uint64_t since, uint64_t expected)
{
    CHECK_EQUAL(blame_take(id, ticks_at(now), since ? ticks_at(since) : 0, true).ticks / unit,
                expected);
}

static void two_wait_for_two_holders(void)
{
    fresh_lock(1);
    blame_wait_begins(lock, ticks_at(100), true);
    blame_wait_begins(lock, ticks_at(150), true);
    CHECK(blame_is_due(id));
    take(200, 0, 100 + 50); /* the first holder releases the lock */
    take(200, 0, 0);
    blame_wait_ends_alone(lock, ticks_at(210)); /* nobody is charged with 20 of the ticks */
    take(310, 0, 100);                          /* the second holder, which had waited itself */
    blame_wait_ends_alone(lock, ticks_at(311));
    CHECK_EQUAL(lock->waits & ~(uint64_t)WAITS_NEW, 0);
    CHECK(!blame_is_due(id));
}

static void who_gives_up_has_waited(void)
{
    fresh_lock(2);
    blame_wait_begins(lock, ticks_at(100), true);
    blame_wait_ends(lock, ticks_at(400));
    CHECK(blame_is_due(id));
    take(900, 0, 300);
    CHECK_EQUAL(lock->waits & ~(uint64_t)WAITS_NEW, 0);
}

/* An attempt that was no wait is taken back; what a holder was charged with meanwhile reduces the
 * next charge. */
static void no_wait_adds_nothing(void)
{
    fresh_lock(3);
    blame_wait_begins(lock, ticks_at(100), true);
    take(130, 0, 30);
    blame_wait_ends(lock, ticks_at(100));
    take(200, 0, 0);
    blame_wait_begins(lock, ticks_at(200), true);
    take(220, 0, 0);
    take(250, 0, 20);
    blame_wait_ends(lock, ticks_at(250));
    CHECK_EQUAL(lock->waits & ~(uint64_t)WAITS_NEW, 0);
}

static void a_reader_is_not_charged_for_others(void)
{
    fresh_lock(4);
    blame_wait_begins(lock, ticks_at(100), true);
    take(1000, 990, 10);
    take(1000, 0, 890);
    blame_wait_ends_alone(lock, ticks_at(1000));
    CHECK_EQUAL(lock->waits & ~(uint64_t)WAITS_NEW, 0);
}

/* The waiter that was woken before the hold began waited for a processor until then. */
static void a_holder_is_not_charged_for_the_time_before(void)
{
    fresh_lock(8);
    blame_wait_begins(lock, ticks_at(100), true);
    blame_wait_begins(lock, ticks_at(100), true);
    CHECK_EQUAL(blame_take(id, ticks_at(1000), ticks_at(990), false).ticks / unit, 2 * 10);
    take(1000, 0, 0);
    blame_wait_ends(lock, ticks_at(1000));
    blame_wait_ends(lock, ticks_at(1000));
    CHECK_EQUAL(lock->waits & ~(uint64_t)WAITS_NEW, 0);
}

/* The word keeps only the lowest 48 bits of a moment. */
static void the_clock_may_be_far(void)
{
    uint64_t before = base;
    base = UINT64_MAX - ticks_at(0) - 5000 * unit;
    fresh_lock(5);
    for (uint64_t n = 0; n < 1000; n++)
        blame_wait_begins(lock, ticks_at(0), true);
    take(3000, 0, 1000 * 3000);
    for (uint64_t n = 0; n < 1000; n++)
        blame_wait_ends(lock, ticks_at(3000));
    CHECK_EQUAL(lock->waits & ~(uint64_t)WAITS_NEW, 0);
    base = before;
}

static void too_many_are_not_counted(void)
{
    fresh_lock(6);
    uint64_t counted = 0;
    for (uint64_t n = 0; n < 70000; n++)
        counted += blame_wait_begins(lock, ticks_at(10), true);
    CHECK_EQUAL(counted, WAITS_MAX);
    take(12, 0, 2 * WAITS_MAX);
    for (uint64_t n = 0; n < counted; n++)
        blame_wait_ends(lock, ticks_at(12));
    CHECK_EQUAL(lock->waits & ~(uint64_t)WAITS_NEW, 0);
}

/* Threads wait and hold at random; the sums must be the same whatever came between. */
enum { THREADS = 4, ROUNDS = 200000 };

static uint64_t begun[THREADS], charged[THREADS];

static void *wait_and_hold(void *number)
{
    uintptr_t self = (uintptr_t)number;
    uint64_t now = 100 * self;
    for (int i = 0; i < ROUNDS; i++) {
        blame_wait_begins(lock, ticks_at(now), true);
        begun[self] += 7;
        blame_wait_ends(lock, ticks_at(now + 7));
        now += 11;
        charged[self] += blame_take(id, ticks_at(1000000000), 0, true).ticks / unit;
    }
    return NULL;
}

static void sums_are_exact_among_threads(void)
{
    pthread_t threads[THREADS];
    uint64_t waited = 0, taken = 0;
    fresh_lock(7);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, wait_and_hold, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        waited += begun[i];
        taken += charged[i];
    }
    CHECK_EQUAL(lock->waits & WAITS_MASK, 0);
    /* The rest are waits that a holder took for running ones, but which had ended before. */
    int64_t left = (int64_t)(0 - (lock->waits >> LT_WAITS_BITS << LT_WAITS_BITS)) >> LT_WAITS_BITS;
    CHECK_EQUAL(waited, taken + (uint64_t)left);
}

/* A wait that was left by longjmp is forgotten with the next wait. */
static void a_wait_that_was_left_is_forgotten(void)
{
    struct lt_thread *t = watched();
    struct waiting left, next;
    uintptr_t frames[4] = {0};
    fresh_lock(8);
    wait_begin(t, &left, &(struct wait_for){.key = lock->key}, &frames[0]);
    CHECK_EQUAL(lock->waits & WAITS_MASK, 1);
    wait_begin(t, &next, &(struct wait_for){.key = lock->key}, &frames[2]);
    CHECK_EQUAL(lock->waits & WAITS_MASK, 1);
    wait_end_without(&next);
    CHECK_EQUAL(lock->waits & WAITS_MASK, 0);
    wait_end_refused(&left); /* a wait for a lock of the program's own may be taken back later */
    CHECK_EQUAL(lock->waits & WAITS_MASK, 0);
}

/* A wait stays short although the thread holds very many locks. */
static void a_wait_charges_a_bounded_number_of_held_locks(void)
{
    enum { HELD = 20, CHARGED = 16 };
    struct lt_thread *t = watched();
    uint64_t keys[HELD], now = lt_now(), due = 0;
    for (uint64_t i = 0; i < HELD; i++) {
        keys[i] = lock_key(LT_KIND_MUTEX, (void *)(0x20000 + i * 64));
        acquired(t, keys[i], 0, NULL, 0);
        held_find(t, keys[i])->since = now - 100 * unit;
        blame_wait_begins(lock_find(keys[i]), now - 100 * unit, true);
    }
    blame_charge_held(t, t->held_top, 0, now);
    for (uint64_t i = 0; i < HELD; i++) {
        due += blame_take(lock_id(keys[i], 0), now, 0, false).ticks != 0;
        held_forget(t, keys[i]);
    }
    CHECK_EQUAL(due, HELD - CHARGED);
}

static void charges_add_up_by_site(void)
{
    struct lt_thread *t = watched();
    fresh_lock(9);
    for (int i = 0; i < 3; i++) {
        blame_charge(t, id, 0x1234, 0, 10);
        blame_charge(t, id, 0x5678, 0, 100);
    }
    const struct lt_site *table = shm_ptr(t->sites);
    uint64_t total = 0;
    for (uint32_t i = 0; i < t->site_capacity; i++)
        if (table[i].count && table[i].lock == (id | LT_SITE_BLAME)) {
            total += table[i].wait_ticks;
            CHECK_EQUAL(table[i].count, 3);
        }
    CHECK_EQUAL(total, 330);
}

int main(void)
{
    CHECK(watched());
    unit = 1ull << lt_clock.wait_shift;
    base = 1000000 * unit;
    two_wait_for_two_holders();
    who_gives_up_has_waited();
    no_wait_adds_nothing();
    a_reader_is_not_charged_for_others();
    a_holder_is_not_charged_for_the_time_before();
    the_clock_may_be_far();
    too_many_are_not_counted();
    sums_are_exact_among_threads();
    a_wait_that_was_left_is_forgotten();
    charges_add_up_by_site();
    a_wait_charges_a_bounded_number_of_held_locks();
    return 0;
}
