/* A thousand threads, or as many as thousand_threads THREADS says. Half of the threads wait for
 * work; the others take turns at locks of their own. At a line three threads ask for each other's
 * lock, for good.
 *
 * Says "ready". After the line the program says the three tids, and a time of each thread
 * (CLOCK_MONOTONIC). At that time the thread had its first lock and was about to request its
 * second.
 */
#include "../target.h"

enum { THREADS = 1000, LOCKS = 48, RING = 3, SMALL_STACK = 64 << 10 };

static pthread_mutex_t g_work_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_work = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t g_shards[LOCKS], g_ring[RING];
static pthread_barrier_t all_run, each_has_one;
static int tids[RING];
static double requested_at[RING];
static int is_time;

static KEPT void *idle(void *unused)
{
    pthread_barrier_wait(&all_run);
    pthread_mutex_lock(&g_work_lock);
    for (;;)
        pthread_cond_wait(&g_work, &g_work_lock);
    return unused;
}

static KEPT void *busy(void *argument)
{
    pthread_mutex_t *own = &g_shards[(uintptr_t)argument % LOCKS];
    pthread_barrier_wait(&all_run);
    for (;;) {
        pthread_mutex_lock(own);
        pause_ms(20);
        pthread_mutex_unlock(own);
        pause_ms(20);
    }
    return NULL;
}

static KEPT void *ring(void *argument)
{
    uintptr_t n = (uintptr_t)argument;
    tids[n] = own_tid();
    pthread_barrier_wait(&all_run);
    while (!__atomic_load_n(&is_time, __ATOMIC_ACQUIRE))
        pause_ms(5);
    pthread_mutex_lock(&g_ring[n]);
    requested_at[n] = now();
    pthread_barrier_wait(&each_has_one);
    pthread_mutex_lock(&g_ring[(n + 1) % RING]);
    return NULL;
}

static void begin(void *(*run)(void *), uintptr_t n)
{
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, SMALL_STACK);
    must(pthread_create(&thread, &small, run, (void *)n), "pthread_create");
}

int main(int argc, char **argv)
{
    unsigned threads = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : THREADS;
    if (threads < RING)
        return 2;
    pthread_barrier_init(&all_run, NULL, threads + 1);
    pthread_barrier_init(&each_has_one, NULL, RING + 1);
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_init(&g_shards[i], NULL);
    for (int i = 0; i < RING; i++)
        pthread_mutex_init(&g_ring[i], NULL);
    for (uintptr_t i = 0; i < threads; i++)
        begin(i < RING ? ring : i < threads / 2 ? idle : busy, i);
    pthread_barrier_wait(&all_run);
    say("ready");
    hear();
    __atomic_store_n(&is_time, 1, __ATOMIC_RELEASE);
    pthread_barrier_wait(&each_has_one);
    char text[300];
    snprintf(text, sizeof text, "{\"tids\": [%d, %d, %d], \"requested_at\": [%.6f, %.6f, %.6f]}",
             tids[0], tids[1], tids[2], requested_at[0], requested_at[1], requested_at[2]);
    say(text);
    hear();
    return 0;
}
