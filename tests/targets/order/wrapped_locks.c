/* Very many mutexes that all go through one function, as in a program that wraps its locks. One
 * scenario each: an order against all others, several stacks for one order, and more orders than
 * the library keeps. */
#include "scenarios.h"

enum { LOCKS = 400, NEXT_ONES = 8 };

static pthread_mutex_t g_locks[LOCKS];

/* For each lock, also some of the locks behind it: 3,164 orders of one stack. */
static KEPT void all_upwards(void)
{
    for (int i = 0; i < LOCKS; i++)
        for (int j = i + 1; j < LOCKS && j <= i + NEXT_ONES; j++)
            both(&g_locks[i], &g_locks[j]);
}

static KEPT void last_downwards(void)
{
    both(&g_locks[LOCKS - 1], &g_locks[LOCKS - 2]);
}

static KEPT void last_upwards(void)
{
    both(&g_locks[LOCKS - 2], &g_locks[LOCKS - 1]);
}

/* Every pair: 79,800 orders of one stack. */
static KEPT void every_pair(void)
{
    for (int i = 0; i < LOCKS; i++)
        for (int j = i + 1; j < LOCKS; j++)
            both(&g_locks[i], &g_locks[j]);
}

static void inversion_after_many(void)
{
    employ();
    on(0, all_upwards);
    on(1, last_downwards);
}

static void many_in_order(void)
{
    employ();
    on(0, all_upwards);
    on(1, last_upwards);
}

static void too_many(void)
{
    employ();
    on(0, every_pair);
}

static void inversion_after_too_many(void)
{
    too_many();
    on(1, last_upwards);
    on(2, last_downwards);
}

/* ---- several ways into one order ---- */

static KEPT void load(void)
{
    last_upwards();
}

static KEPT void store(void)
{
    last_upwards();
}

static KEPT void rebalance(void)
{
    last_downwards();
}

static void two_ways(void)
{
    employ();
    on(0, load);
    on(1, store);
    on(2, rebalance);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(inversion_after_many),     SCENARIO(many_in_order), SCENARIO(too_many),
        SCENARIO(inversion_after_too_many), SCENARIO(two_ways),
    };
    (void)argc;
    for (int i = 0; i < LOCKS; i++)
        must(pthread_mutex_init(&g_locks[i], NULL), "init");
    return RUN_SCENARIO(all, argv);
}
