/* Tests of waits inside waits, and of waits that a thread left. */
#include <stdbool.h>
#include <stdint.h>

#include "account/account_state.h"
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

/* A lock of the program's own is built of others: its wait is one wait. */
static void a_wait_within_a_custom_lock_is_part_of_it(struct lt_thread *t)
{
    uint64_t outer = key_of(LT_KIND_CUSTOM, 11);
    struct waiting w = wait_at(t, outer, HIGH);
    uint32_t seq = t->wait.seq;
    const enum lt_kind parts[] = {LT_KIND_COND, LT_KIND_SEM, LT_KIND_FUTEX};
    for (int i = 0; i < 3; i++) {
        uint64_t key = key_of(parts[i], 12), records = t->ring_head;
        struct waiting inner = wait_lasting(t, key, 100);
        CHECK_EQUAL(t->wait.key, outer);
        wait_end_done(&inner);
        CHECK_EQUAL(t->wait.key, outer);
        CHECK_EQUAL(counts_of(t, key)->acquisitions, parts[i] == LT_KIND_FUTEX ? 0 : 1);
        CHECK_EQUAL(waits_counted(t, key)->contended, 0);
        CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 0);
        inner = wait_lasting(t, key, 100);
        wait_end_without(&inner);
        CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 0);
        CHECK_EQUAL(t->ring_head, records);
    }
    CHECK_EQUAL(t->wait.seq, seq); /* still the same wait */
    CHECK_EQUAL(waiters_of(outer), 1);
    w.end = w.start + 1;
    wait_end_holding(&w, 0);
    CHECK_EQUAL(waiters_of(outer), 0);
    CHECK_EQUAL(waits_counted(t, outer)->contended, 1);
    drop(t, outer);
}

/* A mutex inside a lock of the program's own, or a signal handler that waits. */
static void an_interrupted_wait_is_published_again(struct lt_thread *t)
{
    const enum lt_kind kinds[] = {LT_KIND_CUSTOM, LT_KIND_MUTEX};
    for (int i = 0; i < 2; i++) {
        uint64_t outer = key_of(kinds[i], 13), key = key_of(LT_KIND_MUTEX, 14 + (uint64_t)i);
        struct waiting w = wait_at(t, outer, HIGH);
        uint64_t since = t->wait.since;
        struct waiting inner = wait_lasting(t, key, 100);
        CHECK_EQUAL(t->wait.key, key);
        CHECK_EQUAL(waiters_of(key), 1);
        CHECK_EQUAL(waiters_of(outer), 1);
        wait_end_without(&inner);
        CHECK_EQUAL(t->wait.key, outer);
        CHECK_EQUAL(t->wait.since, since);
        CHECK(account_state(t)->wait_frame == &frames[HIGH]);
        CHECK_EQUAL(waiters_of(key), 0);
        CHECK_EQUAL(waiters_of(outer), 1);
        CHECK_EQUAL(waits_counted(t, key)->wait_ticks, 100);
        wait_end_without(&w);
        CHECK_EQUAL(waiters_of(outer), 0);
        CHECK_EQUAL(t->wait.key, 0);
    }
}

static void a_wait_left_by_longjmp_is_taken_back(struct lt_thread *t)
{
    uint64_t key = key_of(LT_KIND_MUTEX, 16);
    struct waiting left = wait_at(t, key, MIDDLE);
    wait_left(t, &frames[DEEP]); /* a handler that interrupts the wait */
    CHECK_EQUAL(t->wait.key, key);
    CHECK_EQUAL(waiters_of(key), 1);
    wait_left(t, &frames[HIGH]); /* the caller of what waited */
    CHECK_EQUAL(t->wait.key, 0);
    CHECK_EQUAL(waiters_of(key), 0);
    CHECK(!blame_take(lock_id(key, 0), lt_now(), 0, false).ticks);
    wait_forget(t); /* twice is once */
    CHECK_EQUAL(waiters_of(key), 0);
    left = wait_at(t, key, DEEP);
    struct waiting next = wait_at(t, key, MIDDLE); /* the first news of the longjmp */
    CHECK_EQUAL(waiters_of(key), 1);
    wait_end_without(&next);
    CHECK_EQUAL(t->wait.key, 0);
    (void)left;
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    a_wait_within_a_custom_lock_is_part_of_it(t);
    an_interrupted_wait_is_published_again(t);
    a_wait_left_by_longjmp_is_taken_back(t);
    return 0;
}
