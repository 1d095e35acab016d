/* Threads wait for two conditions with one mutex, some with a time limit. They wake each other by
 * signals and broadcasts, with the mutex and without. Some are cancelled in a wait. The program
 * runs as many rounds as the argument says. At last the program says "quiet": only the main thread
 * is left.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "../target.h"

enum { THREADS = 8, CANCELLED = 2 };
static pthread_mutex_t g_storm = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t conds[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static atomic_int left, stop;
static int rounds;

static void unlock(void *mutex)
{
    pthread_mutex_unlock(mutex);
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static void wait_a_while(pthread_cond_t *cond, unsigned random)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += random % 200 * 1000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&g_storm);
    pthread_cleanup_push(unlock, &g_storm);
    if (random % 4)
        pthread_cond_timedwait(cond, &g_storm, &until);
    else if (!atomic_load(&stop))
        pthread_cond_wait(cond, &g_storm);
    pthread_cleanup_pop(1);
}

static void wake(pthread_cond_t *cond, unsigned random)
{
    if (random % 2)
        pthread_mutex_lock(&g_storm);
    if (random % 8 < 2)
        pthread_cond_broadcast(cond);
    else
        pthread_cond_signal(cond);
    if (random % 2)
        pthread_mutex_unlock(&g_storm);
}

static void *storm(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    for (int round = 0; round < rounds; round++) {
        unsigned random = next_random(&state);
        if (random % 3)
            wake(&conds[random / 3 % 2], random / 6);
        else
            wait_a_while(&conds[random / 3 % 2], random / 6);
    }
    atomic_fetch_sub(&left, 1);
    return NULL;
}

static void *waits_until_cancelled(void *argument)
{
    for (unsigned random = 0;; random++) {
        wait_a_while(&conds[random % 2], 4 * random + 4);
        pthread_testcancel();
    }
    return argument;
}

static void *cancel_others(void *argument)
{
    while (!atomic_load(&stop)) {
        pthread_t victim = start(waits_until_cancelled, NULL, "victim");
        pause_ms(1);
        pthread_cancel(victim);
        pthread_join(victim, NULL);
    }
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS], cancellers[CANCELLED];
    rounds = argc > 1 ? atoi(argv[1]) : 2000;
    atomic_store(&left, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++)
        threads[i] = start(storm, (void *)(i * 7919 + 1), "storm");
    for (int i = 0; i < CANCELLED; i++)
        cancellers[i] = start(cancel_others, NULL, "canceller");
    while (atomic_load(&left)) { /* the last threads may wait for a signal that nobody sends */
        pause_ms(1);
        pthread_cond_broadcast(&conds[0]);
        pthread_cond_broadcast(&conds[1]);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < CANCELLED; i++)
        pthread_join(cancellers[i], NULL);
    say("quiet");
    hear();
    return 0;
}
