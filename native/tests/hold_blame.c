/* Tests of blame at releases: who held the lock is charged with the waits for it. */
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

static void waits_for_a_held_lock_are_charged_at_the_release(struct lt_thread *t)
{
    uint64_t unit = wait_unit();
    for (int way = 0; way < 2; way++) {
        uint64_t key = key_number(21 + (uint64_t)way);
        take(t, key);
        struct lt_lock *lock = lock_find(key);
        uint64_t began = held_find(t, key)->since - 1000 * unit;
        held_find(t, key)->since = began;
        blame_wait_begins(lock, began, true);
        blame_wait_begins(lock, began, true);
        release_either(t, key, way);
        uint64_t due = charged(t, key, 0);
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

/* A hold of unknown length counts as long as the mean of the timed holds. If a wait began during
 * the hold, the wait itself says how long the hold was. */
static void an_untimed_hold_is_charged_its_mean(struct lt_thread *t)
{
    uint64_t unit = wait_unit(), key = key_number(23);
    take_untimed(t, key);
    struct lt_lock *lock = lock_find(key);
    counts_of(t, key)->hold_sampled = 4;
    counts_of(t, key)->hold_sampled_ticks = 4 * 10 * unit;
    uint64_t began = lt_now() - 100000 * unit;
    for (int i = 0; i < 3; i++)
        blame_wait_begins(lock, began, true);
    lock->waits &= ~(uint64_t)WAITS_NEW; /* the waits began before this hold */
    release_slowly(t, key, true);
    CHECK_EQUAL(charged(t, key, 0), 3 * 10 * unit);
    lock->waits = 0;
    take_untimed(t, key);
    blame_wait_begins(lock, lt_now() - 100000 * unit, true); /* a new one */
    release_slowly(t, key, true);
    CHECK(charged(t, key, 0) >= 3 * 10 * unit + 99999 * unit);
    lock->waits = 0;
}

static void an_untimed_hold_without_a_mean_is_charged_whole(struct lt_thread *t)
{
    uint64_t unit = wait_unit(), key = key_number(24);
    take_untimed(t, key);
    struct lt_lock *lock = lock_find(key);
    blame_wait_begins(lock, lt_now() - 100000 * unit, true);
    lock->waits &= ~(uint64_t)WAITS_NEW;
    release_slowly(t, key, true);
    CHECK(charged(t, key, 0) >= 99999 * unit);
    lock->waits = 0;
}

/* The steps in between: each is done once, whoever calls it first. */
static void a_release_accounts_and_charges_once(struct lt_thread *t)
{
    uint64_t unit = wait_unit(), key = key_number(25);
    take(t, key);
    struct lt_lock *lock = lock_find(key);
    uint64_t began = held_find(t, key)->since -= 1000 * unit;
    blame_wait_begins(lock, began, true);
    struct release release;
    release_begin(t, key, &release);
    CHECK(release.due.ticks >= 999 * unit);
    release_account(t, &release);
    release_account(t, &release);
    CHECK_EQUAL(counts_of(t, key)->hold_sampled, 1);
    release_charge(t, &release);
    uint64_t due = charged(t, key, 0);
    release_charge(t, &release);
    release_end(t, &release);
    CHECK_EQUAL(charged(t, key, 0), due);
    CHECK_EQUAL(counts_of(t, key)->hold_sampled, 1);
    lock->waits = 0;
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    waits_for_a_held_lock_are_charged_at_the_release(t);
    an_untimed_hold_is_charged_its_mean(t);
    an_untimed_hold_without_a_mean_is_charged_whole(t);
    a_release_accounts_and_charges_once(t);
    return 0;
}
