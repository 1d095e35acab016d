/* Threads wait for a condition a second at a time, again and again. "renews" does nothing but wait.
 * "computes" and "pauses" work between two waits, for 5 ms each: the near misses.
 *
 * Prints the threads' ids as {"renews": tid, ...} when all have begun; ends with its input.
 */
#include <sched.h>
#include <time.h>

#include "../target.h"

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_news = PTHREAD_COND_INITIALIZER;
static int tids[3];

static KEPT void wait_a_second(void)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec++;
    pthread_cond_timedwait(&g_news, &g_lock, &end);
}

static KEPT void compute(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    long end = used.tv_sec * 1000L + used.tv_nsec / 1000000 + 5;
    while (used.tv_sec * 1000L + used.tv_nsec / 1000000 < end)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
}

static KEPT void *work(void *number)
{
    int self = (int)(intptr_t)number;
    __atomic_store_n(&tids[self], own_tid(), __ATOMIC_RELEASE);
    for (;;) {
        must(pthread_mutex_lock(&g_lock), "lock");
        wait_a_second();
        while (self == 0)
            wait_a_second();
        must(pthread_mutex_unlock(&g_lock), "unlock");
        if (self == 1)
            compute();
        else
            pause_ms(5);
    }
    return NULL;
}

int main(void)
{
    static const char *const names[] = {"renews", "computes", "pauses"};
    for (int i = 0; i < 3; i++) {
        start(work, (void *)(intptr_t)i, names[i]);
        while (!__atomic_load_n(&tids[i], __ATOMIC_ACQUIRE))
            sched_yield();
    }
    printf("{\"renews\": %d, \"computes\": %d, \"pauses\": %d}\n", tids[0], tids[1], tids[2]);
    fflush(stdout);
    getchar(); /* until stdin has a line or ends */
    _exit(0);
}
