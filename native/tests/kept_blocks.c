/* Tests of the blocks of threads that ended with a lock: their lists stay, but not too many. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "account/hold.h"
#include "account/misuse.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"
#include "order/lock_life.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "tables/held_list.h"
#include "tables/lock_table.h"

enum { MAX_KEPT = 64, MANY = 1000, ROBUST = 16 };

static uint64_t key_number(uint64_t n)
{
    return lock_key(LT_KIND_MUTEX, (void *)(0x50000 + n * sizeof(pthread_mutex_t)));
}

static void *end_with(void *argument)
{
    acquired(watched(), *(const uint64_t *)argument, 0, NULL, 0);
    return NULL;
}

static void *end_with_robust(void *argument)
{
    acquired(watched(), *(const uint64_t *)argument, ROBUST, NULL, 0);
    return NULL;
}

static void *end_without(void *argument)
{
    CHECK(watched());
    return argument;
}

static void run(void *(*function)(void *), uint64_t key)
{
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, function, &key), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
}

/* So many threads come and go that the library collects the ended ones. */
static void churn(void)
{
    for (int i = 0; i < 4 * MAX_KEPT; i++)
        run(end_without, 0);
}

static unsigned kept_blocks(void)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < lt_shm->threads.count; i++) {
        const struct lt_thread *t = array_at(&lt_shm->threads, i);
        count += t->state == LT_THREAD_KEPT;
    }
    return count;
}

static void a_list_stays_until_the_lock_is_destroyed(void)
{
    uint64_t key = key_number(0);
    run(end_with, key);
    churn();
    CHECK_EQUAL(kept_blocks(), 1);
    CHECK(held_by_others(key, NULL));
    lock_life_ends(key);
    churn();
    CHECK_EQUAL(kept_blocks(), 0);
    CHECK(!held_by_others(key, NULL));
}

static void the_kernel_frees_a_robust_mutex(void)
{
    run(end_with_robust, key_number(1));
    churn();
    CHECK_EQUAL(kept_blocks(), 0);
}

static void a_release_by_another_thread_ends_it(void)
{
    uint64_t key = key_number(2);
    struct release release;
    run(end_with, key);
    churn();
    CHECK_EQUAL(kept_blocks(), 1);
    release_begin(watched(), key, &release);
    release_end(watched(), &release);
    churn();
    CHECK_EQUAL(kept_blocks(), 0);
}

/* The newest lists stay, and that of a lock that a thread waits for. The table of threads does not
 * grow with the threads that ended. */
static void their_number_is_limited(void)
{
    uint64_t awaited = key_number(3), newest = key_number(3 + MANY);
    run(end_with, awaited);
    lock_find(awaited)->waits = 1;
    for (uint64_t n = 1; n <= MANY; n++)
        run(end_with, key_number(3 + n));
    churn();
    CHECK_EQUAL(kept_blocks(), MAX_KEPT);
    CHECK(held_by_others(awaited, NULL));
    CHECK(held_by_others(newest, NULL));
    CHECK(!held_by_others(key_number(4), NULL));
    CHECK(lt_shm->threads.count < 8 * MAX_KEPT);
}

/* While the library was dormant, another thread may have released the lock. */
static void a_new_epoch_makes_lists_stale(void)
{
    lt_control.page.mode += 1u << 8;
    churn();
    CHECK_EQUAL(kept_blocks(), 0);
}

int main(void)
{
    CHECK(watched());
    a_list_stays_until_the_lock_is_destroyed();
    the_kernel_frees_a_robust_mutex();
    a_release_by_another_thread_ends_it();
    their_number_is_limited();
    a_new_epoch_makes_lists_stale();
    return 0;
}
