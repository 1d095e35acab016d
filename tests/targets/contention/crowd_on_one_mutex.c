/* More threads than processors take one mutex for short holds. A thread that is woken for the mutex
 * waits for a processor first, and others take the mutex meanwhile. Says how long the threads held
 * the mutex in all, by their own measurement.
 */
#include <sched.h>
#include <stdatomic.h>

#include "../target.h"

enum { THREADS = 8, HOLDS = 6000, HOLD_US = 20, APART_US = 60 };
static pthread_mutex_t g_crowded = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begin;
static double held_s[THREADS];

static void use_cpu(double us)
{
    double until = now() + us / 1e6;
    while (now() < until)
        ;
}

static void *take_turns(void *argument)
{
    double *held = argument;
    pthread_barrier_wait(&begin);
    for (int i = 0; i < HOLDS; i++) {
        must(pthread_mutex_lock(&g_crowded), "lock");
        double taken = now();
        use_cpu(HOLD_US);
        *held += now() - taken;
        must(pthread_mutex_unlock(&g_crowded), "unlock");
        use_cpu(APART_US);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    cpu_set_t one; /* one processor: most woken threads have to wait for it */
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    must(sched_setaffinity(0, sizeof one, &one) ? errno : 0, "sched_setaffinity");
    must(pthread_barrier_init(&begin, NULL, THREADS), "pthread_barrier_init");
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(take_turns, &held_s[i], "taker");
    double sum_s = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum_s += held_s[i];
    }
    char text[100];
    snprintf(text, sizeof text, "{\"held_s\": %.6f, \"waiters\": %d}", sum_s, THREADS - 1);
    say(text);
    hear();
    return 0;
}
