/* Code that runs when a thread ends: destructors of thread-specific data, in all rounds. In them
 * the thread locks, waits for a lock that is held, sleeps on a condition, and posts and waits.
 * The thread also starts and joins another thread. Threads end by return, by pthread_exit and by
 * cancellation.
 */
#include <limits.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "../target.h"

enum { THREADS = 3, TIMES = 60, ROUNDS = PTHREAD_DESTRUCTOR_ITERATIONS };

pthread_mutex_t g_at_exit = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_key_t keys[2];
static sem_t turns, never;
static long destroyed, joined; /* guarded by g_at_exit */

static void *quick(void *argument)
{
    pthread_mutex_lock(&g_at_exit);
    joined++;
    pthread_mutex_unlock(&g_at_exit);
    return argument;
}

/* The value is the number of rounds left. A value that is set again is destroyed again. */
static void destructor(pthread_key_t key, void *value)
{
    struct timespec past = {0, 0};
    pthread_mutex_lock(&g_at_exit);
    destroyed++;
    sched_yield(); /* the other threads want the lock */
    check_equal("timedwait", pthread_cond_timedwait(&cond, &g_at_exit, &past), ETIMEDOUT);
    pthread_mutex_unlock(&g_at_exit);
    sem_wait(&turns);
    sched_yield();
    sem_post(&turns);
    if ((long)value == 1)
        check_equal("join", pthread_join(start(quick, NULL, NULL), NULL), 0);
    if ((long)value > 1)
        pthread_setspecific(key, (void *)((long)value - 1));
}

static void first_destructor(void *value)
{
    destructor(keys[0], value);
}

static void second_destructor(void *value)
{
    destructor(keys[1], value);
}

static void *ends(void *argument)
{
    for (int i = 0; i < 2; i++)
        pthread_setspecific(keys[i], (void *)(long)ROUNDS);
    if ((long)argument == 1)
        pthread_exit(NULL);
    if ((long)argument == 2)
        sem_wait(&never);
    return argument;
}

int main(void)
{
    pthread_t threads[THREADS];
    sem_init(&turns, 0, 1);
    sem_init(&never, 0, 0);
    pthread_key_create(&keys[0], first_destructor);
    pthread_key_create(&keys[1], second_destructor);
    for (int time = 0; time < TIMES; time++) {
        for (long i = 0; i < THREADS; i++)
            threads[i] = start(ends, (void *)i, NULL);
        check_equal("cancel", pthread_cancel(threads[2]), 0);
        for (int i = 0; i < THREADS; i++)
            check_equal("join", pthread_join(threads[i], NULL), 0);
    }
    /* A cancelled thread may end before it has set a value. */
    long fewest = 2L * ROUNDS * TIMES * (THREADS - 1), most = 2L * ROUNDS * TIMES * THREADS;
    check_equal("destroyed", destroyed >= fewest && destroyed <= most, 1);
    check_equal("threads of destructors", joined, destroyed / ROUNDS);
    char text[200];
    snprintf(text, sizeof text, "{\"destroyed\": %ld, \"joined\": %ld}", destroyed, joined);
    say(text);
    return verdict_and_stay();
}
