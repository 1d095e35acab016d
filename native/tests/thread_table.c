/* Tests of the tables of threads. A thread's tables grow far beyond their first size, and many
 * threads enter locks into the lock table at once. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "account/hold.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"
#include "order/lock_life.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "tables/lock_table.h"
#include "tables/thread_table.h"

enum { LOCKS = 5000, THREADS = 4, SHARED_LOCKS = 50000 };

static uint64_t key_number(uint64_t n)
{
    return lock_key(LT_KIND_MUTEX, (void *)(0x10000 + n * 40));
}

static void counters_are_exact(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    for (uint64_t round = 0; round < 3; round++)
        for (uint64_t n = 0; n < LOCKS; n++)
            for (uint64_t i = 0; i <= n % 3; i++) {
                acquired(t, key_number(n), 0, NULL, 0);
                if (!released(t, key_number(n))) {
                    struct release release;
                    release_begin(t, key_number(n), &release);
                    CHECK(release.listed);
                    release_end(t, &release);
                }
            }
    const struct lt_lock_counters *table = shm_ptr(t->counters);
    uint64_t used = 0, total = 0;
    for (uint32_t i = 0; i < t->counters_capacity; i++)
        if (table[i].key) {
            used++;
            total += table[i].counts.acquisitions;
            const struct lt_lock *lock = array_at(&lt_shm->locks, table[i].lock);
            CHECK_EQUAL(lock->key, table[i].key);
        }
    CHECK_EQUAL(used, LOCKS);
    CHECK_EQUAL(t->counters_count, LOCKS);
    for (uint64_t n = 0; n < LOCKS; n++)
        CHECK_EQUAL(counters_of(t, key_number(n), 0)->counts.acquisitions, 3 * (n % 3 + 1));
    CHECK_EQUAL(t->other.counts.acquisitions, 0);
    CHECK_EQUAL(t->held_top, 0);
    CHECK_EQUAL(t->table_seq % 2, 0);
}

static void sites_count_exactly(void)
{
    struct lt_thread *t = watched();
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t n = 1; n <= LOCKS; n++)
            site_add(t, n, n * 7, n);
    const struct lt_site *table = shm_ptr(t->sites);
    uint64_t used = 0;
    for (uint32_t i = 0; i < t->site_capacity; i++)
        if (table[i].count) {
            used++;
            CHECK_EQUAL(table[i].count, 3);
            CHECK_EQUAL(table[i].stack, table[i].lock * 7);
            CHECK_EQUAL(table[i].wait_ticks, 3ull * table[i].lock);
            CHECK_EQUAL(table[i].wait_max, table[i].lock);
        }
    CHECK_EQUAL(used, LOCKS);
}

/* The memory that only a lock with waits needs is made for that lock alone. */
static void waits_lie_apart(void)
{
    struct lt_thread *t = watched();
    CHECK_EQUAL(t->waits.count, 0);
    for (uint64_t n = 0; n < LOCKS; n += 10) {
        waits_of(t, counters_of(t, key_number(n), 0))->contended++;
        waits_of(t, counters_of(t, key_number(n), 0))->wait_ticks += n;
    }
    CHECK_EQUAL(t->waits.count, LOCKS / 10);
    for (uint64_t n = 0; n < LOCKS; n++) {
        const struct lt_lock_counters *counters = counters_of(t, key_number(n), 0);
        CHECK_EQUAL(counters->waits != 0, n % 10 == 0);
        if (!counters->waits)
            continue;
        const struct lt_waits *waits = array_at(&t->waits, counters->waits - 1);
        CHECK_EQUAL(waits->contended, 1);
        CHECK_EQUAL(waits->wait_ticks, n);
        CHECK(waits->own == (uint64_t)(uintptr_t)array_at(&lt_shm->locks, counters->lock));
    }
    CHECK_EQUAL(t->other_waits.contended, 0);
}

static bool is_zero(const void *bytes, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        if (((const uint8_t *)bytes)[i])
            return false;
    return true;
}

/* The block's next thread begins with small tables, and grows into the ranges of the thread
 * before. */
static void a_block_serves_again(void)
{
    struct lt_thread *t = watched();
    uint64_t table = t->counters, sites = t->sites, used = lt_shm->used;
    uint32_t counters_capacity = t->counters_capacity, site_capacity = t->site_capacity;
    for (int round = 0; round < 3; round++) {
        thread_table_clear(t);
        CHECK_EQUAL(t->counters_count + t->site_count + t->waits.count, 0);
        CHECK(t->counters_capacity < counters_capacity && t->site_capacity < site_capacity);
        CHECK(
            is_zero(shm_ptr(t->counters), t->counters_capacity * sizeof(struct lt_lock_counters)));
        CHECK(is_zero(shm_ptr(t->sites), t->site_capacity * sizeof(struct lt_site)));
        CHECK(is_zero(shm_ptr(t->waits.chunk[0]), t->waits.first * sizeof(struct lt_waits)));
        counters_are_exact();
        sites_count_exactly();
        waits_lie_apart();
        CHECK(t->counters == table && t->counters_capacity == counters_capacity);
        CHECK(t->sites == sites && t->site_capacity == site_capacity);
        CHECK_EQUAL(lt_shm->used, used);
    }
}

static uint32_t ids[THREADS][SHARED_LOCKS];
static pthread_barrier_t start;

static uint64_t shared_key(uint64_t n)
{
    return lock_key(LT_KIND_RWLOCK, (void *)(0x9000000 + n * 56));
}

static void *enter_all(void *argument)
{
    uint32_t *mine = argument;
    pthread_barrier_wait(&start);
    for (uint64_t n = 0; n < SHARED_LOCKS; n++)
        mine[n] = lock_id(shared_key(n), 0);
    return NULL;
}

/* The same lock has the same id in every thread, whichever thread came first. */
static void locks_have_one_id(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, enter_all, ids[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (uint64_t n = 0; n < SHARED_LOCKS; n++) {
        CHECK(ids[0][n]);
        for (int i = 1; i < THREADS; i++)
            CHECK_EQUAL(ids[i][n], ids[0][n]);
        const struct lt_lock *lock = array_at(&lt_shm->locks, ids[0][n]);
        CHECK_EQUAL(lock->key, shared_key(n));
        CHECK(lock_find(shared_key(n)) == lock);
    }
    CHECK(!lock_find(shared_key(SHARED_LOCKS)));
}

static void lives_are_counted(void)
{
    struct lt_lock *lock = lock_find(shared_key(0));
    lock_life_ends(shared_key(0));
    CHECK_EQUAL(lock->destroyed, 1);
    lock_life_begins(shared_key(0), 0, NULL);
    CHECK_EQUAL(lock->destroyed, 0);
    CHECK_EQUAL(lock->generation, 1);
}

int main(void)
{
    counters_are_exact();
    sites_count_exactly();
    waits_lie_apart();
    a_block_serves_again();
    locks_have_one_id();
    lives_are_counted();
    return 0;
}
