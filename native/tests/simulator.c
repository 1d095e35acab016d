/* Tests of the simulator: programs with known counts, damaged ones, and many odd ones. */
#include "simulator.h"

#include <errno.h>
#include <string.h>

#include "check.h"

enum { MILLISECOND = 1000000, OPERATIONS = 12, THREADS = 20, LOCKS = 4, ODD_PROGRAMS = 300 };
enum { MANY = 10000 };

static uint64_t rounds[MANY], wait_ns[LOCKS];
static struct lt_outcome outcome = {.rounds = rounds, .wait_ns = wait_ns};

/* A round of 1 ms: most of it without the lock, or all of it within the lock. */
static const struct lt_operation round_of_1_ms[] = {
    {LT_SLEEP, 0, 0},   {LT_TAKE, 0, 0},  {LT_SLEEP, 0, MILLISECOND},
    {LT_RELEASE, 0, 0}, {LT_ROUND, 0, 0},
};
static const int64_t wakes_ns[] = {0, 1000, 50000};

static struct lt_program of_threads(struct lt_operation *operations,
                                    struct lt_thread_model *threads, uint64_t count)
{
    static const struct lt_lock_model lock = {LT_MUTEX, 0};

    for (uint64_t i = 0; i < count; i++) {
        memcpy(&operations[5 * i], round_of_1_ms, sizeof round_of_1_ms);
        threads[i] = (struct lt_thread_model){5, 0, 0};
    }
    return (struct lt_program){operations, threads, &lock, wakes_ns, 5 * count, count, 1, 1, 2, 1};
}

static int run(const struct lt_program *program)
{
    return lt_simulate(program, 100 * MILLISECOND, 1000 * MILLISECOND, &outcome);
}

static void known_program(void)
{
    static struct lt_operation operations[5 * MANY];
    static struct lt_thread_model threads[MANY];
    struct lt_program program = of_threads(operations, threads, 1);
    uint64_t sum = 0;

    CHECK_EQUAL(run(&program), 0);
    CHECK_EQUAL(rounds[0], 1000);
    CHECK_EQUAL(outcome.span_ns, 1000 * MILLISECOND);
    CHECK_EQUAL(wait_ns[0], 0);
    program = of_threads(operations, threads, MANY);
    CHECK_EQUAL(run(&program), 0);
    for (int i = 0; i < MANY; i++)
        sum += rounds[i];
    CHECK_EQUAL(sum, 1000);
    CHECK(outcome.stopped > MANY / 2);
    program.thread_count = program.operation_count = program.lock_count = program.wake_count = 0;
    CHECK_EQUAL(run(&program), 0);
    CHECK_EQUAL(outcome.stopped, 0);
}

static void damaged(void)
{
    struct lt_operation operations[5];
    struct lt_thread_model thread;
    const struct lt_program sound = of_threads(operations, &thread, 1);
    struct lt_program program = sound;

    program.operation_count = 4;
    CHECK_EQUAL(run(&program), -EINVAL);
    program = sound;
    program.lock_count = 0;
    CHECK_EQUAL(run(&program), -EINVAL);
    thread.start = 5;
    CHECK_EQUAL(run(&sound), -EINVAL);
    thread.start = -1;
    CHECK_EQUAL(run(&sound), -EINVAL);
    thread = (struct lt_thread_model){0, 0, 0};
    CHECK_EQUAL(run(&sound), -EINVAL);
    thread = (struct lt_thread_model){5, 4, 0};
    CHECK_EQUAL(run(&sound), 0);
    operations[1].lock = -1;
    CHECK_EQUAL(run(&sound), -EINVAL);
    operations[1] = (struct lt_operation){LT_ROUND + 1, 0, 0};
    CHECK_EQUAL(run(&sound), -EINVAL);
}

static uint64_t random_below(uint64_t end)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % end;
}

/* A number that a sound program may have, or one at an end of the range. */
static int64_t odd_amount(void)
{
    switch (random_below(16)) {
    case 0: return INT64_MAX;
    case 1: return INT64_MIN;
    case 2: return -1;
    case 3: return (int64_t)1 << 56;
    case 4: return 0;
    default: return (int64_t)random_below(4 * MILLISECOND);
    }
}

/* Any operations of any locks, with odd times and units. */
static void odd(void)
{
    static struct lt_operation operations[OPERATIONS * THREADS];
    struct lt_thread_model threads[THREADS];
    struct lt_lock_model locks[LOCKS];
    int64_t wakes[] = {odd_amount(), odd_amount()};
    struct lt_program program = {operations,
                                 threads,
                                 locks,
                                 wakes,
                                 0,
                                 random_below(THREADS + 1),
                                 LOCKS,
                                 random_below(3),
                                 random_below(8),
                                 random_below(100)};

    for (int i = 0; i < LOCKS; i++)
        locks[i] = (struct lt_lock_model){(int64_t)random_below(5), odd_amount() % 7};
    for (uint64_t i = 0; i < program.thread_count; i++) {
        int64_t count = 1 + (int64_t)random_below(OPERATIONS);

        threads[i] = (struct lt_thread_model){count, (int64_t)random_below((uint64_t)count),
                                              random_below(5) == 0};
        for (; count; count--)
            operations[program.operation_count++] = (struct lt_operation){
                (int64_t)random_below(LT_ROUND + 1), (int64_t)random_below(LOCKS), odd_amount()};
    }
    CHECK_EQUAL(lt_simulate(&program, odd_amount() % MILLISECOND, MILLISECOND, &outcome), 0);
    CHECK(outcome.span_ns > 0 && outcome.stopped <= program.thread_count);
}

/* Ends after a number of events, or of steps, however long the span is. */
static void endless(void)
{
    static const struct lt_operation types[] = {
        {LT_COMPUTE, 0, 1}, {LT_COMPUTE, 0, 0}, {LT_SLEEP, 0, 0}, {LT_ROUND, 0, 0}};
    const struct lt_thread_model thread = {1, 0, 0};
    struct lt_program program = {.threads = &thread, .operation_count = 1, .thread_count = 1};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        program.operations = &types[i];
        CHECK_EQUAL(lt_simulate(&program, 0, INT64_MAX, &outcome), 0);
        CHECK(outcome.span_ns < (int64_t)1 << 56);
    }
}

int main(void)
{
    known_program();
    damaged();
    for (int i = 0; i < ODD_PROGRAMS; i++)
        odd();
    endless();
    return 0;
}
