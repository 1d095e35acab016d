/* Tests of init sites: a site is known until another lock takes its entry, and is never another
 * lock's. */
#include <pthread.h>
#include <stdint.h>

#include "base/tls.h"
#include "check.h"
#include "order/lock_life.h"
#include "tables/init_sites.h"
#include "tables/lock_table.h"
#include "tables/stack_table.h"

enum { LOCKS = 200000, THREADS = 4, ROUNDS = 200000, PROGRAMS = 3000, OBJECTS = 150 };

static uint64_t key_number(uint64_t number)
{
    return (uint64_t)LT_KIND_MUTEX << LT_KIND_SHIFT | (number * 40 + 64);
}

/* A site from which the lock can be told. */
static const void *site_number(uint64_t number)
{
    return (const void *)(uintptr_t)(0x1000 + number);
}

static void one(void)
{
    CHECK(!init_site_of(key_number(1)));
    init_site_note(key_number(1), 1, site_number(1));
    CHECK(init_site_of(key_number(1)) == site_number(1));
    CHECK_EQUAL(init_type_of(key_number(1)), 1);
    CHECK_EQUAL(init_type_of(key_number(2)), 0);
    init_site_note(key_number(1), 2, site_number(2));
    CHECK(init_site_of(key_number(1)) == site_number(2));
    init_site_forget(key_number(2));
    CHECK(init_site_of(key_number(1)) == site_number(2));
    init_site_forget(key_number(1));
    CHECK(!init_site_of(key_number(1)));
}

static void many(void)
{
    uint64_t known = 0;
    for (uint64_t i = 0; i < LOCKS; i++)
        init_site_note(key_number(i), (uint32_t)i, site_number(i));
    for (uint64_t i = 0; i < LOCKS; i++) {
        const void *site = init_site_of(key_number(i));
        CHECK(!site || site == site_number(i));
        known += site != NULL;
    }
    CHECK(known > 10000 && known < LOCKS);
}

/* Of a few hundred locks none is forgotten, wherever they lie: in objects on the heap, or
 * elsewhere. */
static void few(void)
{
    for (uint64_t program = 1; program < PROGRAMS; program++) {
        uint64_t heap = program * 0x9e3779b97f4a7c15u >> 20,
                 data = program * 0xd1342543de82ef95u >> 20;
        for (uint64_t i = 0; i < OBJECTS; i++) {
            init_site_note(key_number(heap + 4 * i), 1, site_number(i));
            init_site_note(key_number(data + i), 1, site_number(OBJECTS + i));
        }
        for (uint64_t i = 0; i < OBJECTS; i++) {
            CHECK(init_site_of(key_number(heap + 4 * i)) == site_number(i));
            CHECK(init_site_of(key_number(data + i)) == site_number(OBJECTS + i));
            init_site_forget(key_number(heap + 4 * i));
            init_site_forget(key_number(data + i));
            CHECK(!init_site_of(key_number(heap + 4 * i)));
        }
    }
}

static void *write_and_read(void *first)
{
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t number = ((uintptr_t)first + round * 7) % 1000; /* the same locks in all threads */
        init_site_note(key_number(number), (uint32_t)number, site_number(number));
        const void *site = init_site_of(key_number(number));
        CHECK(!site || site == site_number(number));
        if (round % 3 == 0)
            init_site_forget(key_number(number));
    }
    return NULL;
}

static void at_once(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, write_and_read, (void *)(i * 100)), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
}

static uint64_t made_at(const struct lt_lock *lock)
{
    CHECK(lock);
    return lock->made_at ? stack_frames(stack_at(lock->made_at))[0] : 0;
}

/* The entry of a lock has the site from the first use on, and a new one for each life. */
static void in_the_entry(void)
{
    CHECK(watched());
    uint64_t key = key_number(5), none = key_number(6);
    init_site_forget(key);
    init_site_forget(none);
    lock_life_begins(key, 0, site_number(1));
    CHECK(!lock_find(key));
    CHECK(lock_id(key, 0) && lock_id(none, 0));
    CHECK_EQUAL(made_at(lock_find(key)), 0x1001);
    CHECK_EQUAL(made_at(lock_find(none)), 0);
    lock_life_ends(key);
    lock_life_begins(key, 0, site_number(2));
    CHECK_EQUAL(made_at(lock_find(key)), 0x1002);
}

/* A type that only the initialisation knew. */
static void with_its_type(void)
{
    uint64_t key = key_number(7), other = key_number(8);
    lock_life_begins(key, 5, site_number(1));
    lock_life_begins(other, 5, site_number(1));
    CHECK(lock_id(key, 0) && lock_id(other, 3));
    CHECK_EQUAL(lock_find(key)->type, 5);
    CHECK_EQUAL(lock_find(other)->type, 3);
    lock_life_begins(key, 0, site_number(2));
    CHECK_EQUAL(lock_find(key)->type, 5);
    lock_life_begins(key, 6, site_number(2));
    CHECK_EQUAL(lock_find(key)->type, 6);
}

int main(void)
{
    one();
    few();
    many();
    at_once();
    in_the_entry();
    with_its_type();
    return 0;
}
