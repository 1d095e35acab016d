/* Tests of the call sites that took the units of semaphores, and of the list of unloaded code. */
#include "account/taken_units.h"

#include <stdint.h>

#include "account/hold.h"
#include "account/signal_counts.h"
#include "account/wait.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"
#include "order/lock_life.h"
#include "shm/segment.h"
#include "stack/capture.h"
#include "tables/stack_table.h"
#include "tables/thread_table.h"
#include "tables/unloaded_code.h"

enum { FIRST = 0x1000, SECOND = 0x2000 };

static const uint64_t more = 1ull << LT_TAKEN_MORE_BIT, by_stack = 1ull << LT_TAKEN_STACK_BIT;

static uint64_t key_number(uint64_t n)
{
    return lock_key(LT_KIND_SEM, (void *)(0x30000 + n * sizeof(uint64_t)));
}

static void take(struct lt_thread *t, uint64_t key, uintptr_t site)
{
    sem_passed(t, key, (const void *)site);
}

static void post(uint64_t key)
{
    signal_count_slowly(key, current_mode());
}

static uint64_t taken_at(struct lt_thread *t, uint64_t key)
{
    return counters_of(t, key, 0)->taken_at;
}

static void the_first_unit_counts(struct lt_thread *t)
{
    uint64_t key = key_number(0);
    take(t, key, FIRST);
    CHECK_EQUAL(taken_at(t, key), FIRST);
    take(t, key, FIRST);
    CHECK_EQUAL(taken_at(t, key), FIRST);
    post(key);
    take(t, key, SECOND); /* and posts it, while the first one stays */
    post(key);
    CHECK_EQUAL(taken_at(t, key), FIRST | more);
    take(t, key, FIRST);
    post(key);
    CHECK_EQUAL(taken_at(t, key), FIRST | more);
    post(key); /* the last one */
    take(t, key, SECOND);
    CHECK_EQUAL(taken_at(t, key), SECOND);
}

static void each_life_begins_anew(struct lt_thread *t)
{
    uint64_t key = key_number(1);
    lock_life_begins(key, 2, NULL);
    take(t, key, FIRST);
    lock_life_ends(key);
    lock_life_begins(key, 2, NULL);
    take(t, key, SECOND);
    CHECK_EQUAL(taken_at(t, key), SECOND);
}

static NOINLINE uint32_t take_after_wait(struct lt_thread *t, uint64_t key)
{
    struct waiting waiting;
    wait_begin(t, &waiting, &(struct wait_for){.key = key}, FRAME());
    wait_end_done(&waiting);
    return waiting.stack;
}

static void after_a_wait_the_stack_counts(struct lt_thread *t)
{
    uint64_t key = key_number(2);
    uint32_t stack = take_after_wait(t, key);
    CHECK(stack);
    CHECK_EQUAL(taken_at(t, key), by_stack | stack);
    CHECK_EQUAL(waits_of(t, counters_of(t, key, 0))->contended, 1);
    take(t, key, (uintptr_t)stack_frames(stack_at(stack))[0]);
    CHECK_EQUAL(taken_at(t, key), by_stack | stack);
    take(t, key, FIRST);
    CHECK_EQUAL(taken_at(t, key), by_stack | more | stack);
    CHECK_EQUAL(waits_of(t, counters_of(t, key, 0))->contended, 1);
}

/* A post, then the first wait: the figures of waits are made while a call site is known. */
static void both_have_room(struct lt_thread *t)
{
    uint64_t key = key_number(3);
    take(t, key, FIRST);
    post(key);
    CHECK(!waits_found(t, counters_of(t, key, 0)));
    for (uint64_t n = 1; n <= 3; n++) {
        take_after_wait(t, key);
        post(key);
        CHECK_EQUAL(waits_found(t, counters_of(t, key, 0))->contended, n);
    }
}

/* Without room the semaphore is counted under "other locks", which keep their figures of waits. */
static void other_locks_have_none(struct lt_thread *t)
{
    struct lt_waits *waits = waits_of(t, &t->other);
    CHECK(waits == &t->other_waits);
    count_passed(t, &t->other, NULL);
    CHECK(waits_of(t, &t->other) == waits);
}

static void unloaded_code_is_listed_once(void)
{
    const struct lt_unloaded_code *unloaded = &lt_shm->unloaded;
    CHECK_EQUAL(unloaded->count, 0);
    for (int i = 0; i < 3; i++)
        unloaded_code_note(0x1000, 0x3000);
    unloaded_code_note(0x1800, 0x2000);
    CHECK_EQUAL(unloaded->count, 1);
    CHECK_EQUAL(unloaded->ranges[0].start, 0x1000);
    CHECK_EQUAL(unloaded->ranges[0].end, 0x3000);
    unloaded_code_note(0x2000, 0x4000);
    CHECK_EQUAL(unloaded->count, 2);
    for (uint64_t i = 0; i < LT_UNLOADED_RANGES; i++)
        unloaded_code_note(0x10000 * (i + 1), 0x10000 * (i + 1) + 1);
    CHECK_EQUAL(unloaded->count, 2 + LT_UNLOADED_RANGES); /* a reader sees that some are missing */
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    the_first_unit_counts(t);
    each_life_begins_anew(t);
    after_a_wait_the_stack_counts(t);
    both_have_room(t);
    other_locks_have_none(t);
    unloaded_code_is_listed_once();
    return 0;
}
