/* A long wait, and then many brief ones. A line of the input has a number of milliseconds, a number
 * of rounds, and the milliseconds between two rounds. The main thread holds g_cache_lock for the
 * first time. Meanwhile the other threads wait. In each round each of them waits for g_brief_lock.
 * Then the thread "visitor" ends. The program answers with the seconds of the longest wait.
 */
#include <sched.h>

#include "../target.h"

enum { WAITERS = 3 };

pthread_mutex_t g_cache_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_brief_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begin, end;
static int tids[WAITERS], attempts[WAITERS], rounds;
static double wait_s[WAITERS];

/* The attempt is visible before the thread may sleep in it. */
static KEPT void take(pthread_mutex_t *lock, int waiter)
{
    __atomic_fetch_add(&attempts[waiter], 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(lock);
}

static KEPT void cache_get(int waiter)
{
    double before = now();
    take(&g_cache_lock, waiter);
    wait_s[waiter] = now() - before;
    pthread_mutex_unlock(&g_cache_lock);
}

static void *work(void *argument)
{
    int number = (int)(intptr_t)argument;
    __atomic_store_n(&tids[number], own_tid(), __ATOMIC_SEQ_CST);
    pthread_barrier_wait(&begin);
    cache_get(number);
    for (int round = 0; round < rounds; round++) {
        pthread_barrier_wait(&begin);
        take(&g_brief_lock, number);
        pthread_mutex_unlock(&g_brief_lock);
        pthread_barrier_wait(&end);
    }
    if (number > 0)
        pthread_barrier_wait(&begin); /* the main thread does not come */
    return argument;
}

/* Waits until all threads sleep in their attempt with that number. */
static KEPT void await(int attempt)
{
    for (int i = 0; i < WAITERS; i++)
        while (__atomic_load_n(&attempts[i], __ATOMIC_SEQ_CST) != attempt || !is_asleep(tids[i]))
            sched_yield();
}

static KEPT void cache_reload(unsigned ms)
{
    pthread_mutex_lock(&g_cache_lock);
    pthread_barrier_wait(&begin);
    await(1);
    pause_ms(ms);
    pthread_mutex_unlock(&g_cache_lock);
}

int main(void)
{
    unsigned ms, pause;
    char line[80] = "";
    double longest_s = 0;
    pthread_barrier_init(&begin, NULL, WAITERS + 1);
    pthread_barrier_init(&end, NULL, WAITERS + 1);
    pthread_t visitor = start(work, (void *)0, "visitor");
    for (intptr_t i = 1; i < WAITERS; i++)
        start(work, (void *)i, "worker");
    say("ready");
    if (read(0, line, sizeof line - 1) < 0 || sscanf(line, "%u %d %u", &ms, &rounds, &pause) != 3)
        return 3;
    cache_reload(ms);
    for (int round = 0; round < rounds; round++) {
        pthread_mutex_lock(&g_brief_lock);
        pthread_barrier_wait(&begin);
        await(2 + round);
        pthread_mutex_unlock(&g_brief_lock);
        pthread_barrier_wait(&end);
        pause_ms(pause);
    }
    pthread_join(visitor, NULL);
    for (int i = 0; i < WAITERS; i++)
        longest_s = wait_s[i] > longest_s ? wait_s[i] : longest_s;
    snprintf(line, sizeof line, "%.9f", longest_s);
    say(line);
    hear();
    return 0;
}
