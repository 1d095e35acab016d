/* Tests of lock orders by the thousand, which need a second piece of the shared file. */
#include <stdint.h>

#include "base/tls.h"
#include "check.h"
#include "order/lock_life.h"
#include "order/order_state.h"
#include "orders.h"

/* The locks that are taken through one function may all have orders. */
static void many_locks_of_one_call_site(struct lt_thread *t)
{
    uint32_t before = count();
    for (uint64_t n = 0; n < 5000; n++)
        pair(t, 100, 1000 + n);
    CHECK_EQUAL(count(), before + 5000);
    CHECK(!some_are_left_out());
}

/* A thread that knows many orders does not search for them again. */
static void many_known_orders(struct lt_thread *t)
{
    uint64_t entries = 0;
    for (int round = 0; round < 8; round++) {
        for (uint64_t n = 0; n < 5000; n++)
            pair(t, 100, 1000 + n);
        entries = count();
    }
    CHECK(order_state(t)->more_bits >= 12 && order_state(t)->more_bits <= 14);
    uint32_t forgotten = order_state(t)->forgotten;
    for (uint64_t n = 0; n < 5000; n++)
        pair(t, 100, 1000 + n);
    CHECK(order_state(t)->forgotten < forgotten + 500);
    CHECK_EQUAL(count(), entries);
}

/* The addresses of short-lived locks have a new lock again and again. */
static void short_lived_locks(struct lt_thread *t)
{
    uint32_t before = count();
    for (int life = 0; life < 1000; life++) {
        pair_one_way(t, 7000, 7001);
        lock_life_ends(key_number(7001));
        lock_life_begins(key_number(7001), 0, NULL);
    }
    CHECK(count() >= before + 128 && count() < before + 256);
    CHECK(some_are_left_out());
    CHECK(order_state(t)->skipped > 500);
}

/* One stack takes half of the table. Another stack still finds room. */
static void more_than_there_is_room_for(struct lt_thread *t)
{
    enum { ALL = 1 << 16, MANY = 40000 };
    uint32_t before = count();
    for (uint64_t n = 0; n < MANY; n++)
        pair_one_way(t, 100, 10000 + n);
    CHECK(count() > before + ALL / 3 && count() < before + MANY);
    before = count();
    for (uint64_t n = 0; n < 5000; n++)
        pair_another_way(t, 101, 10000 + n);
    CHECK(count() > before + 5000 / 64 && count() <= before + 5000);
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    many_locks_of_one_call_site(t);
    many_known_orders(t);
    short_lived_locks(t);
    more_than_there_is_room_for(t);
    return 0;
}
