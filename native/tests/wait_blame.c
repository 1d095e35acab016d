/* Tests of blame at waits: a holder that waits itself passes the blame on. */
#include <stdbool.h>
#include <stdint.h>

#include "account/blame.h"
#include "account/hold.h"
#include "account/wait.h"
#include "accounting.h"
#include "base/clock.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"
#include "records.h"
#include "tables/held_list.h"
#include "tables/lock_table.h"
#include "waits.h"

/* The time that readers waited stays due, for another reader may be to blame. Nobody is to blame
 * for the time between a release and the next acquisition. */
static void only_who_has_the_lock_alone_clears_what_is_due(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_RWLOCK, 4);
    uint64_t unit = wait_unit();
    struct waiting w = wait_lasting(t, key, 100 * unit);
    wait_end_holding(&w, LT_HELD_SHARED);
    CHECK_EQUAL(held_find(t, key)->flags, LT_HELD_SHARED | LT_HELD_TIMED | LT_HELD_CONTENDED);
    drop(t, key);
    uint64_t due = blame_take(lock_id(key, 0), w.end + unit, 0, false).ticks;
    CHECK(due >= 99 * unit && due <= 101 * unit);
    w = wait_lasting(t, key, 100 * unit);
    wait_end_holding(&w, 0);
    drop(t, key);
    CHECK_EQUAL(blame_take(lock_id(key, 0), w.end + unit, 0, false).ticks, 0);
}

/* If the holder of a lock waits itself, the holder is charged in two parts. One is for the time
 * before its own wait, the other for the time during that wait. */
static void a_holder_that_waits_passes_the_blame_on(struct lt_thread *t)
{
    uint64_t held = key_of(LT_KIND_MUTEX, 17), wanted = key_of(LT_KIND_MUTEX, 18);
    uint64_t unit = wait_unit();
    acquired(t, held, 0, (void *)SITE, 0);
    struct lt_lock *lock = lock_find(held);
    uint64_t began = lt_now() - 1000 * unit;
    held_find(t, held)->since = began;
    blame_wait_begins(lock, began, true);
    struct waiting w = wait_of(t, wanted);
    uint64_t before = charged(t, held, 0);
    CHECK(before >= 999 * unit && before <= w.start - began + unit);
    CHECK_EQUAL(charged(t, held, wanted), 0);
    w.end = w.start + 500 * unit;
    wait_end_without(&w);
    CHECK_EQUAL(charged(t, held, 0), before);
    uint64_t during = charged(t, held, wanted);
    CHECK(during >= 499 * unit && during <= 501 * unit);
    blame_wait_ends(lock, w.end);
    drop(t, held);
}

/* A lock that the thread took during its wait, in a signal handler, is not behind the wait. */
static void only_locks_held_all_the_while_pass_it_on(struct lt_thread *t)
{
    uint64_t held = key_of(LT_KIND_MUTEX, 19), wanted = key_of(LT_KIND_MUTEX, 20);
    uint64_t unit = wait_unit();
    struct waiting w = wait_of(t, wanted);
    acquired(t, held, 0, (void *)SITE, 0);
    blame_wait_begins(lock_find(held), w.start, true);
    w.end = w.start + 500 * unit;
    wait_end_without(&w);
    CHECK_EQUAL(charged(t, held, wanted), 0);
    blame_wait_ends(lock_find(held), w.start);
    drop(t, held);
}

static void charge_begins_at(uint64_t key, uint64_t moment)
{
    lock_find(key)->waits = 0;
    blame_wait_begins(lock_find(key), moment, true);
}

/* Of two locks the upper one comes or goes during the wait. The wait may be for a condition. */
static void the_lower_lock_passes_it_on(struct lt_thread *t, bool comes, bool of_condition)
{
    uint64_t low = key_of(LT_KIND_MUTEX, 26 + 4 * (uint64_t)comes + 8 * (uint64_t)of_condition);
    uint64_t unit = wait_unit(), top = low + 64, mutex = key_of(LT_KIND_MUTEX, 50);
    uint64_t wanted = of_condition ? key_of(LT_KIND_COND, 51) : mutex;
    acquired(t, low, 0, (void *)SITE, 0);
    if (!comes)
        acquired(t, top, 0, (void *)SITE, 0);
    struct waiting w = wait_of(t, wanted);
    if (comes)
        acquired(t, top, 0, (void *)SITE, 0);
    w.end = w.start + 500 * unit;
    while (lt_now() <= w.end + unit)
        continue;
    charge_begins_at(low, w.start);
    charge_begins_at(top, w.start);
    if (!comes)
        held_forget(t, top);
    if (of_condition)
        wait_mutex_taken_back(&w, mutex, 0);
    wait_end_without(&w);
    CHECK(charged(t, low, wanted) >= 499 * unit);
    CHECK_EQUAL(charged(t, top, wanted), 0);
    CHECK(charged(t, low, mutex) > 0);
    CHECK_EQUAL(charged(t, top, mutex), 0);
    lock_find(low)->waits = lock_find(top)->waits = 0;
    held_forget(t, mutex);
    held_forget(t, top);
    drop(t, low);
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    only_who_has_the_lock_alone_clears_what_is_due(t);
    a_holder_that_waits_passes_the_blame_on(t);
    only_locks_held_all_the_while_pass_it_on(t);
    for (int n = 0; n < 4; n++)
        the_lower_lock_passes_it_on(t, n & 1, n & 2);
    return 0;
}
