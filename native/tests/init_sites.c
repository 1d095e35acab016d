/* Tests of init sites: a stack is known until another lock takes its entry, and is never another
 * lock's. The stack leads to the callers of a wrapper. */
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "account/hold.h"
#include "base/clock.h"
#include "base/tls.h"
#include "check.h"
#include "order/lock_life.h"
#include "stack/capture.h"
#include "tables/held_list.h"
#include "tables/init_sites.h"
#include "tables/lock_table.h"
#include "tables/stack_table.h"

enum { LOCKS = 200000, THREADS = 4, ROUNDS = 200000, PROGRAMS = 3000, OBJECTS = 150 };

static uint64_t key_number(uint64_t number)
{
    return (uint64_t)LT_KIND_MUTEX << LT_KIND_SHIFT | (number * 40 + 64);
}

/* A pointer from which the lock can be told: the table does not read the stack. */
static const struct lt_stack *stack_number(uint64_t number)
{
    return (const struct lt_stack *)(uintptr_t)(0x1000 + 8 * number);
}

static void one_lock(void)
{
    CHECK(!init_stack_of(key_number(1)));
    init_site_note(key_number(1), 1, stack_number(1), 0);
    CHECK(init_stack_of(key_number(1)) == stack_number(1));
    CHECK_EQUAL(init_type_of(key_number(1)), 1);
    CHECK_EQUAL(init_type_of(key_number(2)), 0);
    init_site_note(key_number(1), 2, stack_number(2), 0);
    CHECK(init_stack_of(key_number(1)) == stack_number(2));
    init_site_forget(key_number(2));
    CHECK(init_stack_of(key_number(1)) == stack_number(2));
    init_site_forget(key_number(1));
    CHECK(!init_stack_of(key_number(1)));
}

/* In a forked child the table shows the lives of the parent's locks at the fork. */
static void of_parent(void)
{
    uint32_t type = 0, generation = 0;
    init_site_note(key_number(1), 2, stack_number(1), 7);
    CHECK(!init_is_of_parent(key_number(1), &type, &generation));
    init_sites_forked();
    CHECK(init_is_of_parent(key_number(1), &type, &generation));
    CHECK_EQUAL(type, 2);
    CHECK_EQUAL(generation, 7);
    CHECK(!init_is_of_parent(key_number(2), &type, &generation));
    init_site_note(key_number(1), 3, stack_number(1), 0);
    CHECK(!init_is_of_parent(key_number(1), &type, &generation));
    init_site_note(key_number(2), 3, stack_number(1), 0);
    init_sites_forked();
    init_sites_forked();
    CHECK(!init_is_of_parent(key_number(2), &type, &generation)); /* of the parent's parent */
    init_site_forget(key_number(1));
    init_site_forget(key_number(2));
}

static void many(void)
{
    uint64_t named = 0;
    for (uint64_t i = 0; i < LOCKS; i++)
        init_site_note(key_number(i), (uint32_t)i, stack_number(i), 0);
    for (uint64_t i = 0; i < LOCKS; i++) {
        const struct lt_stack *site = init_stack_of(key_number(i));
        CHECK(!site || site == stack_number(i));
        named += site != NULL;
    }
    CHECK(named > 10000 && named < LOCKS);
}

/* Of a few hundred locks none is forgotten, wherever they lie: in objects on the heap, or
 * elsewhere. */
static void few(void)
{
    for (uint64_t program = 1; program < PROGRAMS; program++) {
        uint64_t heap = program * 0x9e3779b97f4a7c15u >> 20,
                 data = program * 0xd1342543de82ef95u >> 20;
        for (uint64_t i = 0; i < OBJECTS; i++) {
            init_site_note(key_number(heap + 4 * i), 1, stack_number(i), 0);
            init_site_note(key_number(data + i), 1, stack_number(OBJECTS + i), 0);
        }
        for (uint64_t i = 0; i < OBJECTS; i++) {
            CHECK(init_stack_of(key_number(heap + 4 * i)) == stack_number(i));
            CHECK(init_stack_of(key_number(data + i)) == stack_number(OBJECTS + i));
            init_site_forget(key_number(heap + 4 * i));
            init_site_forget(key_number(data + i));
            CHECK(!init_stack_of(key_number(heap + 4 * i)));
        }
    }
}

static void *write_and_read(void *first)
{
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t number = ((uintptr_t)first + round * 7) % 1000; /* the same locks in all threads */
        init_site_note(key_number(number), (uint32_t)number, stack_number(number), 0);
        const struct lt_stack *site = init_stack_of(key_number(number));
        CHECK(!site || site == stack_number(number));
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

/* A call that returns to `site`, which the unwinder does not find on the stack. */
static void begins_at(uint64_t key, uint32_t type, uintptr_t site)
{
    const uintptr_t frame[] = {0, site};
    lock_life_begins(key, type, frame);
}

/* The entry of a lock has the site from the first use on, and a new one for each life. */
static void in_the_entry(void)
{
    CHECK(watched());
    uint64_t key = key_number(5), none = key_number(6);
    init_site_forget(key);
    init_site_forget(none);
    begins_at(key, 0, 0x1001);
    CHECK(!lock_find(key));
    CHECK(lock_id(key, 0) && lock_id(none, 0));
    CHECK_EQUAL(made_at(lock_find(key)), 0x1001);
    CHECK_EQUAL(made_at(lock_find(none)), 0);
    lock_life_ends(key);
    begins_at(key, 0, 0x1002);
    CHECK_EQUAL(made_at(lock_find(key)), 0x1002);
}

/* A type that only the initialisation knew. */
static void with_its_type(void)
{
    uint64_t key = key_number(7), other = key_number(8);
    begins_at(key, 5, 0x1001);
    begins_at(other, 5, 0x1001);
    CHECK(lock_id(key, 0) && lock_id(other, 3));
    CHECK_EQUAL(lock_find(key)->type, 5);
    CHECK_EQUAL(lock_find(other)->type, 3);
    begins_at(key, 0, 0x1002);
    CHECK_EQUAL(lock_find(key)->type, 5);
    begins_at(key, 6, 0x1002);
    CHECK_EQUAL(lock_find(key)->type, 6);
}

#define OPAQUE __attribute__((noinline, noclone))
static volatile int work;

/* From here on, no earlier test has left a pointer that leads nowhere. */
enum { UNUSED = 300000 };

/* Stands for the hook that a wrapper calls. */
static OPAQUE void hook(uint64_t key)
{
    lock_life_begins(key, 0, FRAME());
    work++;
}

static OPAQUE void wrapper(uint64_t key)
{
    hook(key);
    work++;
}

#define MAKER(name)                                                                                \
    static OPAQUE void name(uint64_t key)                                                          \
    {                                                                                              \
        wrapper(key);                                                                              \
        work++;                                                                                    \
    }
MAKER(cache_new)
MAKER(queue_new)

static OPAQUE void deep(int depth, uint64_t key)
{
    if (depth)
        deep(depth - 1, key);
    else
        wrapper(key);
    work++;
}

static const struct lt_stack *made_by(void (*maker)(uint64_t), uint64_t key)
{
    maker(key);
    CHECK(lock_id(key, 0) && lock_find(key)->made_at);
    return stack_at(lock_find(key)->made_at);
}

/* One call site, and the callers differ. */
static void with_callers(void)
{
    const struct lt_stack *cache = made_by(cache_new, key_number(UNUSED + 0)),
                          *again = made_by(cache_new, key_number(UNUSED + 1)),
                          *queue = made_by(queue_new, key_number(UNUSED + 2));
    CHECK((cache->depth & ~(uint32_t)LT_STACK_CUT) > 2);
    CHECK_EQUAL(stack_frames(cache)[0], stack_frames(queue)[0]);
    CHECK(stack_frames(cache)[1] != stack_frames(queue)[1]);
    CHECK_EQUAL(stack_frames(cache)[1], stack_frames(again)[1]);
}

/* As in an allocator: the unwinder may call the allocator, and so must not run here. */
static void of_the_caller_alone_while_a_lock_is_held(void)
{
    uint64_t held = key_number(UNUSED + 8);
    acquired(watched(), held, 0, NULL, 0);
    CHECK_EQUAL(made_by(cache_new, key_number(UNUSED + 9))->depth, 1);
    held_forget(watched(), held);
    CHECK(made_by(cache_new, key_number(UNUSED + 10))->depth != 1);
}

static void of_a_deep_stack(void)
{
    deep(40, key_number(UNUSED + 3));
    CHECK(lock_id(key_number(UNUSED + 3), 0));
    const struct lt_stack *stack = stack_at(lock_find(key_number(UNUSED + 3))->made_at);
    CHECK_EQUAL(stack->depth, INNER_FRAMES | LT_STACK_CUT);
    CHECK_EQUAL(stack_frames(stack)[2], stack_frames(stack)[INNER_FRAMES - 1]);
}

/* A process that initialises locks by ever new stacks gets the caller alone in the end. */
static void of_too_many_stacks(void)
{
    enum { WAYS = 50000, CALLS = 14, ROOMS = 500 };
    uint64_t key = key_number(UNUSED + 4), alone = 0;
    CHECK(lock_id(key, 0));
    lt_shm->clock0_ticks = lt_now(); /* however slow the tests were until now */
    for (unsigned way = 0; way < WAYS; way++) {
        volatile char room[64 * (way % ROOMS) + 64]; /* sanitizers align each object */
        room[0] = 1;
        deep((int)(way / ROOMS) % CALLS, key);
        alone += stack_at(lock_find(key)->made_at)->depth == 1;
        work += room[0];
    }
#if defined(__x86_64__) /* elsewhere the library follows frame records, which costs nothing */
    CHECK(alone > 0 && alone < WAYS);
#else
    CHECK_EQUAL(alone, 0);
#endif
}

/* A lock that the parent initialised, and the child uses first. */
static void of_the_parent(void)
{
    uint64_t key = key_number(UNUSED + 5), other = key_number(UNUSED + 6);
    cache_new(key);
    const struct lt_stack *expected = made_by(cache_new, other);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(watched() && !lock_find(other) && lock_id(key, 0));
        const struct lt_stack *actual = stack_at(lock_find(key)->made_at);
        CHECK(actual != expected);
        CHECK((actual->depth & ~(uint32_t)LT_STACK_CUT) > 2);
        CHECK_EQUAL(stack_frames(actual)[0], stack_frames(expected)[0]);
        CHECK_EQUAL(stack_frames(actual)[1], stack_frames(expected)[1]);
        _exit(0);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
}

int main(void)
{
    one_lock();
    of_parent();
    few();
    many();
    at_once();
    in_the_entry();
    with_its_type();
    with_callers();
    of_the_caller_alone_while_a_lock_is_held();
    of_a_deep_stack();
    of_the_parent();
    of_too_many_stacks();
    return 0;
}
