/* Tests of a full file: a lock that is waited for still gets its counters, and no other lock
 * does. */
#include <pthread.h>
#include <stdint.h>

#include "account/brief_wait.h"
#include "account/event_ring.h"
#include "account/hold.h"
#include "account/wait.h"
#include "base/clock.h"
#include "base/lock_key.h"
#include "base/settings.h"
#include "base/tls.h"
#include "check.h"
#include "runtime/thread.h"
#include "shm/arena.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "stack/capture.h"
#include "tables/held_list.h"
#include "tables/lock_table.h"
#include "tables/stack_table.h"
#include "tables/thread_table.h"

enum { LAST_COUNTERS = 8, LAST_LOCKS = 64, LAST_THREADS = 8, FIRST_COUNTERS = 16 };

static uint64_t key_number(enum lt_kind kind, uint64_t n)
{
    return lock_key(kind, (void *)(0x10000 + n * 40));
}

static uint64_t mutex(uint64_t n)
{
    return key_number(LT_KIND_MUTEX, n);
}

static void fill(void)
{
    lt_shm->limit = lt_shm->backed;
    for (uint64_t size = 1 << 16; size >= 64; size /= 2)
        while (shm_alloc(size))
            continue;
    uint32_t index;
    while (array_push(&lt_shm->locks, &index) || array_push(&lt_shm->retired, &index))
        continue;
}

static void lock(struct lt_thread *t, uint64_t key)
{
    struct release release;
    acquired(t, key, 0, NULL, 0);
    release_begin(t, key, &release);
    release_end(t, &release);
}

static void others_are_counted_together(struct lt_thread *t)
{
    uint32_t before = t->counters_count;
    for (uint64_t n = 0; n < 100; n++)
        lock(t, mutex(1000 + n));
    CHECK_EQUAL(t->counters_count, before);
    CHECK_EQUAL(t->other.counts.acquisitions, 100);
    CHECK(lt_shm->notes & LT_NOTE_LOCKS_FOLDED);
    CHECK(counters_of_waited(t, key_number(LT_KIND_COND, 1), 0) == &t->other);
    CHECK(counters_of_waited(t, key_number(LT_KIND_CUSTOM, 1), 0) == &t->other);
}

/* A lock that was counted with the others begins anew, and each further acquisition is counted
 * once. */
static void what_is_waited_for_has_counters(struct lt_thread *t)
{
    uint32_t before = t->counters_count;
    for (uint64_t n = 0; n < LAST_COUNTERS; n++) {
        struct lt_lock_counters *counters = counters_of_waited(t, mutex(1000 + n), 7);
        CHECK(counters != &t->other);
        CHECK(counters->key == mutex(1000 + n) && counters->lock && counters->lock <= LAST_LOCKS);
        CHECK_EQUAL(counters->counts.acquisitions, 0);
        const struct lt_lock *entry = array_at(&lt_shm->locks, counters->lock);
        CHECK(entry->key == counters->key && entry->type == 7);
        waits_of(t, counters)->contended++;
        CHECK_EQUAL(((const struct lt_waits *)array_at(&t->waits, counters->waits - 1))->contended,
                    1);
        CHECK(counters_of(t, mutex(1000 + n), 0) == counters);
        CHECK(counters_of_waited(t, mutex(1000 + n), 0) == counters);
        lock(t, mutex(1000 + n));
        CHECK_EQUAL(counters->counts.acquisitions, 1);
    }
    CHECK_EQUAL(t->counters_count, before + LAST_COUNTERS);
    CHECK_EQUAL(t->other.counts.acquisitions, 100);
    CHECK_EQUAL(t->other_waits.contended, 0);
    CHECK(counters_of_waited(t, mutex(1000 + LAST_COUNTERS), 0) == &t->other);
}

/* If the thread's own table has no room, the wait is at least published. */
static void a_wait_is_published(struct lt_thread *t)
{
    struct waiting waiting;
    wait_begin(t, &waiting, &(struct wait_for){.key = mutex(1000 + LAST_COUNTERS)}, FRAME());
    CHECK(t->wait.lock);
    CHECK_EQUAL(t->wait.lock, lock_id(mutex(1000 + LAST_COUNTERS), 0));
    wait_end_refused(&waiting);
    wait_begin(t, &waiting, &(struct wait_for){.key = key_number(LT_KIND_COND, 1)}, FRAME());
    CHECK_EQUAL(t->wait.lock, 0);
    wait_end_refused(&waiting);
}

static void there_are_so_many_entries(void)
{
    uint32_t last = 0;
    for (uint64_t n = 0; n < LAST_LOCKS - LAST_COUNTERS - 1; n++) {
        uint32_t id = lock_id_of_waited(mutex(2000 + n), 0);
        CHECK(id && id != last);
        CHECK_EQUAL(lock_id(mutex(2000 + n), 0), id);
        last = id;
    }
    CHECK_EQUAL(lock_id_of_waited(mutex(3000), 0), 0);
    CHECK_EQUAL(lock_id_of_waited(mutex(2000), 0), lock_id(mutex(2000), 0));
}

static void where_it_came_from_is_known(struct lt_thread *t)
{
    const uint64_t frames[] = {0x1000, 0x2000};
    uint32_t stack = stack_id(frames, 2);
    CHECK(stack);
    site_add(t, counters_of(t, mutex(1000), 0)->lock, stack, 5);
    CHECK_EQUAL(t->site_count, 1);
    ring_write(t, &(struct lock_event){.type = LT_RECORD_WAIT, .kind = LT_KIND_MUTEX});
    CHECK(t->ring);
    CHECK_EQUAL(t->ring_capacity, RING_RECORDS_MIN);
}

/* The list of held locks cannot grow. The wait counts all the same, and the hold is not listed. */
static void a_wait_counts_without_room_for_its_hold(struct lt_thread *t)
{
    uint64_t key = mutex(1);
    for (uint64_t n = 0; n < LT_HELD_INLINE; n++)
        acquired(t, mutex(100 + n), 0, NULL, 0);
    CHECK_EQUAL(t->held_top, t->held_size);
    uint64_t lost = t->held_lost;
    struct waiting waiting;
    wait_begin(t, &waiting, &(struct wait_for){.key = key}, FRAME());
    wait_end_holding(&waiting, 0);
    wait_mutex_taken_back(&waiting, key, 0);
    struct wait_for what = {.key = key, .stack = 1};
    brief_wait_ended(t, &what, lt_now(), 0, FRAME());
    CHECK_EQUAL(waits_of(t, counters_of(t, key, 0))->contended, 3);
    CHECK_EQUAL(t->held_lost, lost + 3);
    CHECK_EQUAL(t->held_top, t->held_size);
    for (uint64_t n = 0; n < LT_HELD_INLINE; n++)
        held_forget(t, mutex(100 + n));
    CHECK_EQUAL(t->held_top, 0);
    t->held_lost = lost;
}

static const struct lt_retired *retired_of(uint32_t id)
{
    const struct lt_lock *entry = array_at(&lt_shm->locks, id);
    return entry->retired ? array_at(&lt_shm->retired, entry->retired - 1) : NULL;
}

static void what_ended_threads_counted_stays(struct lt_thread *t)
{
    struct lt_lock_counters *waited = counters_of(t, mutex(1000), 0),
                            *other = counters_of(t, mutex(0), 0);
    CHECK(other != &t->other);
    waits_of(t, waited)->wait_ticks = 5;
    lock_retire_counters(waited, waits_found(t, waited));
    CHECK(retired_of(waited->lock));
    CHECK_EQUAL(retired_of(waited->lock)->waits.contended, 1);
    CHECK(!retired_of(other->lock));
    lock_retire_counters(other, waits_found(t, other));
    CHECK(!retired_of(other->lock));
    CHECK_EQUAL(retired_of(0)->counts.acquisitions, other->counts.acquisitions);
}

static void some_threads_begin(void)
{
    struct lt_thread *block[LAST_THREADS];
    for (int i = 0; i < LAST_THREADS; i++) {
        block[i] = thread_reserve();
        CHECK(block[i] && block[i]->counters_capacity);
    }
    CHECK(!thread_reserve());
    CHECK(lt_shm->notes & LT_NOTE_NO_THREAD_BLOCK);
    for (int i = 0; i < LAST_THREADS; i++)
        thread_release(block[i]);
}

static void *begins(void *argument)
{
    *(struct lt_thread **)argument = watched();
    return NULL;
}

/* Threads come one after the other, more than there are reserved blocks: each gets the block of a
 * dead one. */
static void threads_come_and_go(void)
{
    for (int i = 0; i < 3 * LAST_THREADS; i++) {
        pthread_t thread;
        struct lt_thread *block = NULL;
        CHECK(pthread_create(&thread, NULL, begins, &block) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(block);
    }
    CHECK_EQUAL(lt_shm->threads_unwatched, 0);
}

/* Then the table grows as before. */
static void room_comes_back(struct lt_thread *t)
{
    lt_shm->limit = 1 << 30;
    uint32_t before = t->counters_count;
    for (uint64_t n = 0; n < 100; n++)
        lock(t, mutex(4000 + n));
    CHECK_EQUAL(t->counters_count, before + 100);
    for (uint64_t n = 0; n < LAST_COUNTERS; n++)
        CHECK_EQUAL(waits_of(t, counters_of(t, mutex(1000 + n), 0))->contended, 1);
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    for (uint64_t n = 0; n < FIRST_COUNTERS; n++)
        lock(t, mutex(n));
    fill();
    others_are_counted_together(t);
    what_is_waited_for_has_counters(t);
    a_wait_is_published(t);
    there_are_so_many_entries();
    where_it_came_from_is_known(t);
    what_ended_threads_counted_stays(t);
    some_threads_begin();
    threads_come_and_go();
    a_wait_counts_without_room_for_its_hold(t);
    room_comes_back(t);
    return 0;
}
