/* Mutexes that a function of a library initialises, as libuv's does. Two functions of the program
 * make many objects with such a mutex. Workers take the mutexes of different objects.
 *
 *   different   A loop's mutex is taken before the log's, a pool's after the log's.
 *   inverted    A loop's mutex is taken before a pool's, another pool's before another loop's.
 */
#include "../order/scenarios.h"

enum { OBJECTS = 8 };

static pthread_mutex_t *loops[OBJECTS], *pools[OBJECTS];
static pthread_mutex_t g_log = PTHREAD_MUTEX_INITIALIZER;

static KEPT int uv_mutex_init(pthread_mutex_t *mutex)
{
    int error = pthread_mutex_init(mutex, NULL);
    must(error, "init");
    return error;
}

static KEPT pthread_mutex_t *loop_new(void)
{
    pthread_mutex_t *mutex = malloc(sizeof *mutex);
    must(uv_mutex_init(mutex), "loop");
    return mutex;
}

static KEPT pthread_mutex_t *pool_new(void)
{
    pthread_mutex_t *mutex = malloc(sizeof *mutex);
    must(uv_mutex_init(mutex), "pool");
    return mutex;
}

static void loop_log(void)
{
    both(loops[1], &g_log);
}

static void log_pool(void)
{
    both(&g_log, pools[1]);
}

static void loop_pool(void)
{
    both(loops[1], pools[1]);
}

static void pool_loop(void)
{
    both(pools[2], loops[2]);
}

static void different(void)
{
    employ();
    on(0, loop_log);
    on(1, log_pool);
}

static void inverted(void)
{
    employ();
    on(0, loop_pool);
    on(1, pool_loop);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {SCENARIO(different), SCENARIO(inverted)};
    (void)argc;
    for (int i = 0; i < OBJECTS; i++) {
        loops[i] = loop_new();
        pools[i] = pool_new();
        take(loops[i]);
        give(loops[i]);
        take(pools[i]);
        give(pools[i]);
    }
    return RUN_SCENARIO(all, argv);
}
