/* Tests of the long waits of a thread: those that are rare stay, and those that are new. */
#include "account/long_waits.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "account/account_state.h"
#include "account/deferred_events.h"
#include "account/event_ring.h"
#include "base/clock.h"
#include "base/settings.h"
#include "base/tls.h"
#include "check.h"
#include "shm/arena.h"
#include "shm/control.h"
#include "shm/segment.h"

enum { MANY = 100, THREADS = 256 };

static uint64_t second;

static struct lock_event event_of(uint32_t lock, uint64_t ticks)
{
    return (struct lock_event){.type = LT_RECORD_WAIT,
                               .kind = LT_KIND_MUTEX,
                               .lock = lock,
                               .stack = 7,
                               .holder = 8,
                               .start = 9,
                               .wait = ticks,
                               .hold = 10,
                               .site = 11};
}

static void wait_for(uint32_t lock, uint64_t ticks)
{
    struct lock_event event = event_of(lock, ticks);
    event_write(lt_own.block, &event);
}

/* How many entries of the thread are of the lock. */
static int entries(const struct lt_thread *t, uint32_t lock)
{
    const struct lt_long_wait *each = shm_ptr(t->long_waits);
    int count = 0;
    for (int i = 0; i < LT_LONG_WAITS; i++)
        count += each[i].number && each[i].lock == lock;
    return count;
}

static int has_number(const struct lt_thread *t, uint64_t number)
{
    const struct lt_long_wait *each = shm_ptr(t->long_waits);
    for (int i = 0; i < LT_LONG_WAITS; i++)
        if (each[i].number == number)
            return 1;
    return 0;
}

static void begin_anew(struct lt_thread *t)
{
    if (t->long_waits)
        memset(shm_ptr(t->long_waits), 0, LT_LONG_WAITS * sizeof(struct lt_long_wait));
    t->long_waits_noted = t->long_waits_dropped = 0;
}

static void short_waits_need_no_room(struct lt_thread *t)
{
    wait_for(1, second / 30);
    CHECK_EQUAL(t->long_waits, 0);
    CHECK_EQUAL(t->long_waits_noted, 0);
    CHECK(lt_clock.long_wait > second / 30);
}

static void a_long_wait_is_the_record_of_the_ring(struct lt_thread *t)
{
    struct lock_event event = event_of(1, 2 * second);
    uint8_t expected[LT_RECORD_SIZE];
    wait_for(1, 2 * second);
    event_encode(expected, t->tid, &event);
    const struct lt_long_wait *first = shm_ptr(t->long_waits);
    CHECK_EQUAL(t->long_waits_noted, 1);
    CHECK_EQUAL(first->number, t->ring_head);
    CHECK_EQUAL(first->lock, 1);
    CHECK(memcmp(first->record, expected, LT_RECORD_SIZE) == 0);
    for (int i = 0; i < 2 * RING_RECORDS; i++)
        wait_for(2, 1);
    CHECK(memcmp(first->record, expected, LT_RECORD_SIZE) == 0);
    CHECK_EQUAL(t->long_waits_noted, 1);
}

/* As of a thread that waits for work again and again. */
static void frequent_waits_leave_a_rare_one(struct lt_thread *t)
{
    begin_anew(t);
    wait_for(1, 2 * second);
    uint64_t rare = t->ring_head;
    for (int i = 0; i < MANY; i++)
        wait_for(2, 3 * second);
    CHECK(has_number(t, rare));
    CHECK_EQUAL(entries(t, 2), LT_LONG_WAITS - 1);
    for (uint64_t back = 0; back < LT_LONG_WAITS - 1; back++)
        CHECK(has_number(t, t->ring_head - back));
    CHECK_EQUAL(t->long_waits_dropped, MANY - (LT_LONG_WAITS - 1));
}

static void shorter_waits_leave_those_of_a_second(struct lt_thread *t)
{
    begin_anew(t);
    wait_for(1, 2 * second);
    uint64_t longest = t->ring_head;
    for (int i = 0; i < MANY; i++)
        wait_for(1, second / 4);
    CHECK(has_number(t, longest));
    for (uint32_t lock = 2; lock < MANY; lock++)
        wait_for(lock, second / 4);
    CHECK(has_number(t, longest));
    CHECK_EQUAL(t->long_waits_dropped, 0);
}

static void of_many_locks_the_newest_stay(struct lt_thread *t)
{
    begin_anew(t);
    for (uint32_t lock = 1; lock <= MANY; lock++) {
        wait_for(lock, 2 * second);
        CHECK(has_number(t, t->ring_head));
    }
    for (uint32_t lock = MANY - LT_LONG_WAITS + 1; lock <= MANY; lock++)
        CHECK_EQUAL(entries(t, lock), 1);
    CHECK_EQUAL(t->long_waits_dropped, MANY - LT_LONG_WAITS);
}

static void no_room_is_no_harm(struct lt_thread *t)
{
    struct account_state *state = account_state(t);
    struct lt_long_wait *before = state->long_waits;
    uint64_t noted = t->long_waits_noted, limit = lt_shm->limit, head = t->ring_head;
    state->long_waits = NULL;
    lt_shm->limit = 0;
    while (shm_alloc(LT_LONG_WAITS * sizeof(struct lt_long_wait)))
        ;
    wait_for(1, 2 * second);
    CHECK_EQUAL(t->long_waits_noted, noted);
    CHECK_EQUAL(t->ring_head, head + 1);
    lt_shm->limit = limit;
    state->long_waits = before;
}

static struct lt_thread *ended;

static void *wait_and_end(void *unused)
{
    ended = watched();
    CHECK(ended);
    wait_for(5, 2 * second);
    return unused;
}

static void *end(void *unused)
{
    CHECK(watched());
    return unused;
}

static void run(void *(*function)(void *))
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* So many threads come and go that the library collects the ended ones. */
static void the_waits_of_an_ended_thread_stay(void)
{
    run(wait_and_end);
    uint64_t birth = ended->birth;
    for (int i = 0; i < THREADS; i++)
        run(end);
    CHECK(ended->state == LT_THREAD_FREE || ended->birth != birth);
    CHECK_EQUAL(entries(ended, 5), 1);
    CHECK_EQUAL(ended->long_waits_noted, 1);
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    usleep(300000); /* the longer, the less an interrupt between two readings matters */
    second = ticks_of_second(lt_now());
    short_waits_need_no_room(t);
    a_long_wait_is_the_record_of_the_ring(t);
    frequent_waits_leave_a_rare_one(t);
    shorter_waits_leave_those_of_a_second(t);
    of_many_locks_the_newest_stay(t);
    the_waits_of_an_ended_thread_stay();
    no_room_is_no_harm(t);
    return 0;
}
