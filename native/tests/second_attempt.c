/* Tests of the second attempt: how often a thread tries, and when it stops. */
#include "interpose/second_attempt.h"

#include "check.h"

enum { HASH = 5, ENDLESS = 1 << 30 };

static int tries, free_at;

static bool take(void *lock)
{
    CHECK(lock == &free_at);
    return ++tries == free_at;
}

static bool attempt(int which, uint64_t *since)
{
    tries = 0;
    free_at = which;
    return second_attempt(HASH, take, &free_at, since);
}

static void reset(uint64_t limit)
{
    attempts = (struct attempts){0};
    attempt_near = (struct attempt_times){1, limit};
    attempt_far = (struct attempt_times){1, limit};
}

static void a_lock_that_becomes_free_is_taken_at_once(void)
{
    uint64_t before = lt_now(), since;
    reset(ENDLESS);
    for (int which = 1; which <= 10; which++) {
        CHECK(attempt(which, &since));
        CHECK_EQUAL(tries, which);
        CHECK(since >= before && since <= lt_now());
    }
}

static void the_attempt_has_an_end(void)
{
    uint64_t since;
    reset(1);
    CHECK(!attempt(0, &since));
    CHECK_EQUAL(tries, 1);
    CHECK(lt_now() - since >= attempt_near.limit);
}

static void the_pauses_grow(void)
{
    enum { FIRST = 100000, TRIES = 4 };
    uint64_t since;
    reset(ENDLESS);
    attempt_near.first = attempt_far.first = FIRST;
    CHECK(attempt(TRIES, &since));
    CHECK(lt_now() - since >= (1u << TRIES) * FIRST - FIRST);
}

static void one_cpu_makes_no_attempt(void)
{
    uint64_t since = 5;
    reset(0);
    CHECK(!attempt(1, &since));
    CHECK_EQUAL(tries, 0);
    CHECK_EQUAL(since, 0);
}

/* Waits of which each is too long for an attempt. */
static int attempts_among(int waits)
{
    uint64_t since;
    int made = 0;
    while (waits--) {
        CHECK(!attempt(0, &since));
        CHECK_EQUAL(since != 0, tries != 0);
        made += tries != 0;
    }
    return made;
}

static void attempts_that_fail_become_rare(void)
{
    uint64_t since;
    reset(1);
    CHECK_EQUAL(attempts_among(4), 4);
    int made = attempts_among(1000);
    CHECK(made > 20 && made < 50);
    while (!attempt(1, &since))
        continue;
    CHECK_EQUAL(attempts_among(4), 4); /* one success is enough to try each time */
}

static void tries_show_how_far_the_lock_is(void)
{
    reset(1600);
    attempt_near.first = 100;
    CHECK(!attempt_is_far());
    attempt_note_transfer(ENDLESS); /* the thread lost the CPU */
    CHECK(!attempt_is_far());
    attempts.transfer = 0;
    attempt_note_transfer(100); /* found in the CPU's own cache */
    CHECK_EQUAL(attempts.transfer, 0);
    for (int i = 0; i < 20; i++)
        attempt_note_transfer(500);
    CHECK(!attempt_is_far());
    for (int i = 0; i < 20; i++)
        attempt_note_transfer(900);
    CHECK(attempt_is_far());
    uint64_t since;
    int wins = 0;
    for (; attempt_is_far() && wins < 1000; wins++)
        CHECK(attempt(1, &since));
    CHECK(wins > 20 && wins < 100); /* then the thread tries soon again, and learns */
}

int main(void)
{
    a_lock_that_becomes_free_is_taken_at_once();
    the_attempt_has_an_end();
    the_pauses_grow();
    one_cpu_makes_no_attempt();
    attempts_that_fail_become_rare();
    tries_show_how_far_the_lock_is();
    return 0;
}
