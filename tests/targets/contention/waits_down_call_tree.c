/* Threads that wait for locks on different paths of one call tree, a known number of times.
 *
 *     caller_loop > serve > get > take(cache)          GETS waits
 *                         > put > take(cache)          PUTS waits
 *                         > walk > walk > walk > take(table)   WALKS waits, three deep
 *     sleeper_loop > rest > sem_wait                   RESTS waits, for work
 *
 * A holder has the lock each time before the caller wants it. The holder releases the lock
 * only when the caller sleeps. So each acquisition of the caller is one contended wait. Says how
 * often and how long each path waited.
 */
#include "../target.h"

#include <semaphore.h>

enum { GETS = 8, PUTS = 4, WALKS = 2, RESTS = 3, DEPTH = 3 };

pthread_mutex_t g_cache = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_table = PTHREAD_MUTEX_INITIALIZER;
static sem_t g_work;
static pthread_barrier_t taken, done;
static pthread_mutex_t *volatile wanted;
static int caller_tid;
static double get_s, put_s, walk_s;

static KEPT double take(pthread_mutex_t *lock)
{
    wanted = lock;
    pthread_barrier_wait(&taken);
    pthread_barrier_wait(&taken); /* the holder has the lock */
    double before = now();
    pthread_mutex_lock(lock);
    double waited = now() - before;
    pthread_mutex_unlock(lock);
    pthread_barrier_wait(&done);
    return waited;
}

static KEPT void get(void)
{
    get_s += take(&g_cache);
}

static KEPT void put(void)
{
    put_s += take(&g_cache);
}

/* Work remains after each call, so that no call becomes a jump. */
static KEPT int walk(int depth)
{
    if (depth > 1)
        return walk(depth - 1) + 1;
    walk_s += take(&g_table);
    return 1;
}

static KEPT void serve(int round)
{
    if (round < GETS)
        get();
    if (round < PUTS)
        put();
    if (round < WALKS)
        check_equal("depth", walk(DEPTH), DEPTH);
}

static void *caller_loop(void *argument)
{
    caller_tid = own_tid();
    for (int round = 0; round < GETS; round++)
        serve(round);
    wanted = NULL;
    pthread_barrier_wait(&taken);
    return argument;
}

static void *holder_loop(void *argument)
{
    for (;;) {
        pthread_barrier_wait(&taken);
        pthread_mutex_t *lock = wanted;
        if (!lock)
            return argument;
        pthread_mutex_lock(lock);
        pthread_barrier_wait(&taken);
        pause_ms(20);
        while (!is_asleep(caller_tid))
            pause_ms(1);
        pthread_mutex_unlock(lock);
        pthread_barrier_wait(&done);
    }
}

static KEPT void rest(void)
{
    sem_wait(&g_work);
}

static void *sleeper_loop(void *argument)
{
    *(int *)argument = own_tid();
    for (int n = 0; n < RESTS; n++)
        rest();
    return NULL;
}

int main(void)
{
    volatile int sleeper_tid = 0;
    char text[300];
    sem_init(&g_work, 0, 0);
    pthread_barrier_init(&taken, NULL, 2);
    pthread_barrier_init(&done, NULL, 2);
    pthread_t sleeper = start(sleeper_loop, (void *)&sleeper_tid, "sleeper");
    pthread_t caller = start(caller_loop, NULL, "caller");
    pthread_t holder = start(holder_loop, NULL, "holder");
    pthread_join(caller, NULL);
    pthread_join(holder, NULL);
    for (int n = 0; n < RESTS; n++) {
        while (!sleeper_tid || !is_asleep(sleeper_tid))
            pause_ms(1);
        int value;
        sem_post(&g_work);
        do
            sem_getvalue(&g_work, &value);
        while (value);
    }
    pthread_join(sleeper, NULL);
    snprintf(text, sizeof text,
             "{\"gets\": %d, \"get_s\": %.9f, \"puts\": %d, \"put_s\": %.9f, \"walks\": %d, "
             "\"walk_s\": %.9f, \"rests\": %d}",
             GETS, get_s, PUTS, put_s, WALKS, walk_s, RESTS);
    say(text);
    hear();
    return failures != 0;
}
