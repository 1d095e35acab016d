/* Tests of lock orders: each is noted once, with its threads and their segments. And tests of
 * joins. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "account/hold.h"
#include "base/lock_key.h"
#include "base/settings.h"
#include "base/tls.h"
#include "check.h"
#include "order/happens_before.h"
#include "order/lock_life.h"
#include "order/lock_order.h"
#include "order/order_state.h"
#include "orders.h"
#include "runtime/thread.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "stack/capture.h"
#include "tables/lock_table.h"

static const struct lt_order *last(void)
{
    return array_at(&lt_shm->orders, lt_shm->orders.count - 1);
}

static void one_alone_is_none(struct lt_thread *t)
{
    take(t, key_number(0), false);
    give_all(t);
    take(t, key_number(1), false);
    give_all(t);
    CHECK_EQUAL(count(), 0);
}

static void each_once(struct lt_thread *t)
{
    for (int i = 0; i < 3; i++) {
        take(t, key_number(0), false);
        take(t, key_number(1), true);
        take(t, key_number(2), false);
        give_all(t);
    }
    CHECK_EQUAL(count(), 2);
    const struct lt_order *order = last();
    CHECK_EQUAL(order->lock, id(key_number(2)));
    CHECK_EQUAL(order->held_count, 2);
    CHECK_EQUAL(order->held[0], id(key_number(0)));
    CHECK_EQUAL(order->held[1], id(key_number(1)));
    CHECK_EQUAL(order->flags, 1 << 1); /* the second lock, for reading */
    CHECK(order->site[0] && order->site[0] != order->site[1]);
    CHECK(order->stack);
    CHECK_EQUAL(order->seen[0], t->birth << 32 | order_state(t)->segment);
    /* The order is not noted again by a thread that has forgotten that it knows the order. */
    memset(order_state(t)->cache, 0, sizeof(uint32_t) << ORDER_KNOWN_BITS);
    take(t, key_number(0), false);
    take(t, key_number(1), true);
    take(t, key_number(2), false);
    give_all(t);
    CHECK_EQUAL(count(), 2);
    CHECK_EQUAL(order->seen[1], 0);
    const struct lt_order *first = array_at(&lt_shm->orders, 0);
    CHECK_EQUAL(first->flags, LT_ORDER_SHARED);
    /* The same locks held in another way are another order. */
    take(t, key_number(0), true);
    take(t, key_number(1), true);
    give_all(t);
    CHECK_EQUAL(count(), 3);
}

static void one_that_is_held_already_is_none(struct lt_thread *t)
{
    uint32_t before = count();
    take(t, key_number(10), false);
    take(t, key_number(10), false);
    CHECK_EQUAL(count(), before);
    give_all(t);
}

/* A lock that other threads release may not be held at all. */
static void a_list_that_may_be_stale_proves_nothing(struct lt_thread *t)
{
    uint32_t before = count();
    take(t, key_number(20), false);
    lock_distrust(key_number(20));
    take(t, key_number(21), false);
    CHECK_EQUAL(count(), before);
    take(t, key_number(22), false);
    CHECK_EQUAL(count(), before + 1);
    CHECK_EQUAL(last()->held_count, 1);
    CHECK_EQUAL(last()->held[0], id(key_number(21)));
    give_all(t);
}

static void a_new_life_is_another_lock(struct lt_thread *t)
{
    static const uint32_t lives[] = {0, 1 << 16, 2 << 16}; /* first used, destroyed, initialised */
    for (int i = 0; i < 3; i++) {
        take(t, key_number(30), false);
        take(t, key_number(31), false);
        give_all(t);
        CHECK_EQUAL(last()->life, lives[i]);
        CHECK_EQUAL(last()->held_life[0], 0);
        if (i == 0)
            lock_life_ends(key_number(31));
        else
            lock_life_begins(key_number(31), 0, NULL);
    }
}

static void a_long_list_is_cut(struct lt_thread *t)
{
    for (uint64_t n = 0; n < LT_ORDER_HELD + 2; n++)
        take(t, key_number(40 + n), false);
    CHECK_EQUAL(last()->held_count, LT_ORDER_HELD);
    CHECK_EQUAL(last()->held[0], id(key_number(41)));
    CHECK(last()->flags & LT_ORDER_CUT);
    /* The lock is held, but too far down in the list to be named. */
    uint32_t before = count();
    take(t, key_number(40), false);
    CHECK_EQUAL(count(), before);
    give_all(t);
}

static uint32_t seen_by(const struct lt_order *order, uint64_t birth)
{
    uint32_t times = 0;
    for (int i = 0; i < LT_ORDER_SEEN; i++)
        times += order->seen[i] >> 32 == birth;
    return times;
}

static void *same_order(void *argument)
{
    struct lt_thread *t = watched();
    CHECK(t);
    take(t, key_number(0), false);
    take(t, key_number(200), false);
    give_all(t);
    *(uint64_t *)argument = t->birth;
    return NULL;
}

static const struct lt_life *life_of(uint64_t birth)
{
    for (uint32_t i = 0; i < lt_shm->lives.count; i++) {
        const struct lt_life *life = array_at(&lt_shm->lives, i);
        if (life->birth == birth)
            return life;
    }
    return NULL;
}

/* Of very many threads the first and the latest stay. */
static void its_threads(struct lt_thread *t)
{
    uint64_t first = 0, birth = 0;
    for (int i = 0; i < 3 * LT_ORDER_SEEN; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, same_order, &birth) == 0);
        struct lt_life *life = happens_before_find(thread);
        CHECK(pthread_join(thread, NULL) == 0);
        uint32_t segment = order_state(t)->segment;
        happens_before_joins(thread, life);
        first = first ? first : birth;
        CHECK(life_of(birth));
        CHECK_EQUAL(life_of(birth)->joiner, t->birth);
        CHECK_EQUAL(life_of(birth)->joined_in, segment + 1);
        CHECK_EQUAL(order_state(t)->segment, segment + 1);
        CHECK(!happens_before_find(thread)); /* another thread may have this pthread_t next */
    }
    CHECK_EQUAL(last()->lock, id(key_number(200)));
    CHECK_EQUAL(seen_by(last(), first), 1);
    CHECK_EQUAL(seen_by(last(), birth), 1);
}

static void *another_way(void *argument)
{
    struct lt_thread *t = watched();
    CHECK(t);
    pair_another_way(t, 600, 601);
    *(uint64_t *)argument = t->birth;
    return NULL;
}

/* Each thread stands at an entry with its own stack. */
static void each_with_its_stack(struct lt_thread *t)
{
    uint64_t birth = 0;
    pthread_t thread;
    pair_one_way(t, 600, 601);
    const struct lt_order *mine = last();
    CHECK(pthread_create(&thread, NULL, another_way, &birth) == 0);
    pthread_join(thread, NULL);
    const struct lt_order *other = last();
    CHECK(mine != other && mine->stack != other->stack);
    CHECK_EQUAL(mine->lock, other->lock);
    CHECK_EQUAL(mine->hash, other->hash);
    CHECK_EQUAL(seen_by(mine, t->birth), 1);
    CHECK_EQUAL(seen_by(mine, birth), 0);
    CHECK_EQUAL(seen_by(other, birth), 1);
    CHECK_EQUAL(seen_by(other, t->birth), 0);
}

static NOINLINE void pair_deeper(struct lt_thread *t, int depth)
{
    if (depth)
        pair_deeper(t, depth - 1);
    else
        pair(t, 610, 611);
    __asm__ volatile("");
}

static void *at_depth(void *depth)
{
    struct lt_thread *t = watched();
    CHECK(t);
    pair_deeper(t, (int)(intptr_t)depth);
    return NULL;
}

/* Beyond a number of stacks, an entry without a stack has the other threads. */
static void very_many_stacks(void)
{
    enum { STACKS = 40 };
    uint32_t before = count();
    for (intptr_t depth = 0; depth < STACKS; depth++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, at_depth, (void *)depth) == 0);
        pthread_join(thread, NULL);
    }
    CHECK_EQUAL(count(), before + 17);
    CHECK_EQUAL(last()->stack, 0);
    CHECK_EQUAL(last()->site[0], 0);
    CHECK(last()->seen[LT_ORDER_SEEN - 1]);
}

static void in_which_segments(struct lt_thread *t)
{
    for (int i = 0; i < 10; i++) {
        struct lt_thread *other = thread_reserve();
        happens_before_creates(t, other);
        CHECK_EQUAL(order_state(other)->creator, t->birth);
        CHECK_EQUAL(order_state(other)->created_in + 1, order_state(t)->segment);
        thread_release(other);
        take(t, key_number(0), false);
        take(t, key_number(201), false);
        give_all(t);
    }
    CHECK_EQUAL(last()->lock, id(key_number(201)));
    CHECK_EQUAL(seen_by(last(), t->birth), 4);
    CHECK_EQUAL((uint32_t)last()->seen[3], order_state(t)->segment);
}

static void not_where_it_is_not_wanted(struct lt_thread *t)
{
    uint32_t before = count();
    lt_settings.order = ORDER_NONE;
    take(t, key_number(300), false);
    take(t, key_number(301), false);
    give_all(t);
    CHECK_EQUAL(count(), before);
    lt_settings.order = ORDER_NOTED;
}

enum { TOGETHER = 2, ORDERS = 100, EACH_AT = 20 };
static uint32_t arrived;

/* Not a barrier that sleeps: the threads are to come at the same moment. */
static void meet(uint32_t round)
{
    __atomic_fetch_add(&arrived, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < TOGETHER * round)
        sched_yield();
}

static void *all_at_once(void *unused)
{
    struct lt_thread *t = watched();
    for (uint32_t n = 0; n < EACH_AT * ORDERS; n++) {
        take(t, key_number(400 + n / ORDERS), false);
        meet(n + 1);
        take(t, key_number(500 + n % ORDERS), false);
        give_all(t);
    }
    return unused;
}

/* Several threads come with the same order at the same moment: it is one order. */
static void by_many_at_once(void)
{
    pthread_t thread[TOGETHER];
    uint32_t before = lt_shm->orders.count;
    for (int i = 0; i < TOGETHER; i++)
        CHECK(pthread_create(&thread[i], NULL, all_at_once, NULL) == 0);
    for (int i = 0; i < TOGETHER; i++)
        pthread_join(thread[i], NULL);
    for (uint32_t i = before; i < lt_shm->orders.count; i++)
        for (uint32_t j = before; j < i; j++) {
            const struct lt_order *order = array_at(&lt_shm->orders, i);
            const struct lt_order *other = array_at(&lt_shm->orders, j);
            CHECK(!order->hash || order->hash != other->hash || order->stack != other->stack);
        }
    CHECK(count() > 0);
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    one_alone_is_none(t);
    each_once(t);
    one_that_is_held_already_is_none(t);
    a_list_that_may_be_stale_proves_nothing(t);
    a_new_life_is_another_lock(t);
    a_long_list_is_cut(t);
    its_threads(t);
    in_which_segments(t);
    not_where_it_is_not_wanted(t);
    each_with_its_stack(t);
    very_many_stacks();
    by_many_at_once();
    return 0;
}
