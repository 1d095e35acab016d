/* Threads that wait for conditions for ever. No signal finds a thread "lost" in its wait: the only
 * signal came before. The other threads are near misses:
 *
 *   pool     got a signal at the same source location before, for work
 *   fresh    waits there too, for a condition of its own that no thread signals
 *   timed    has a time limit
 *   shared   a thread of another process may signal
 *   named    its function is one of a pool, by its name
 *
 * Says the tids of the threads "lost" when all threads wait.
 */
#include "../target.h"

enum { LOST = 3, POOL = 2, OTHERS = 4 };

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t g_lost = PTHREAD_COND_INITIALIZER;
pthread_cond_t g_pool = PTHREAD_COND_INITIALIZER;
pthread_cond_t g_fresh = PTHREAD_COND_INITIALIZER;
pthread_cond_t g_timed = PTHREAD_COND_INITIALIZER;
pthread_cond_t g_named = PTHREAD_COND_INITIALIZER;
pthread_cond_t g_shared;
static int waiting, done, tasks, lost_tids[LOST];

static KEPT void await_done(void)
{
    while (!done)
        pthread_cond_wait(&g_lost, &g_lock);
}

static KEPT void take_task(pthread_cond_t *condition)
{
    while (!tasks)
        pthread_cond_wait(condition, &g_lock);
    tasks--;
}

static KEPT void serve_worker_loop(void)
{
    while (!done)
        pthread_cond_wait(&g_named, &g_lock);
}

static void *lost(void *tid)
{
    pthread_mutex_lock(&g_lock);
    *(int *)tid = own_tid();
    waiting++;
    await_done();
    pthread_mutex_unlock(&g_lock);
    return NULL;
}

static void *pool(void *condition)
{
    pthread_mutex_lock(&g_lock);
    for (;;) {
        waiting++;
        take_task(condition);
    }
    return NULL;
}

static void *other(void *condition)
{
    struct timespec never = {.tv_sec = (time_t)now() + 1000000000};
    pthread_mutex_lock(&g_lock);
    waiting++;
    while (!done)
        if (condition == &g_timed)
            pthread_cond_clockwait(&g_timed, &g_lock, CLOCK_MONOTONIC, &never);
        else if (condition == &g_named)
            serve_worker_loop();
        else
            pthread_cond_wait(condition, &g_lock);
    pthread_mutex_unlock(&g_lock);
    return NULL;
}

/* The last thread that counts itself releases the mutex in its wait. */
static void await_waiting(int count)
{
    for (int so_far = 0; so_far < count; pause_ms(1)) {
        pthread_mutex_lock(&g_lock);
        so_far = waiting;
        pthread_mutex_unlock(&g_lock);
    }
}

int main(void)
{
    pthread_condattr_t across;
    must(pthread_condattr_init(&across), "pthread_condattr_init");
    must(pthread_condattr_setpshared(&across, PTHREAD_PROCESS_SHARED), "setpshared");
    must(pthread_cond_init(&g_shared, &across), "pthread_cond_init");
    pthread_cond_signal(&g_lost); /* too early */
    for (int i = 0; i < LOST; i++)
        start(lost, &lost_tids[i], "lost");
    for (int i = 0; i < POOL; i++)
        start(pool, &g_pool, "pool");
    await_waiting(LOST + POOL);
    pthread_mutex_lock(&g_lock);
    tasks = POOL;
    pthread_cond_broadcast(&g_pool);
    pthread_mutex_unlock(&g_lock);
    await_waiting(LOST + 2 * POOL);
    start(pool, &g_fresh, "fresh");
    start(other, &g_timed, "timed");
    start(other, &g_shared, "shared");
    start(other, &g_named, "named");
    await_waiting(LOST + 2 * POOL + OTHERS);
    char text[80];
    snprintf(text, sizeof text, "{\"lost\": [%d, %d, %d]}", lost_tids[0], lost_tids[1],
             lost_tids[2]);
    say(text);
    hear();
    return 0;
}
