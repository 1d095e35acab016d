/* One lock that a single thread takes, and one lock for which another thread waits during one of
 * three holds. At a line the program does this, and says what it did.
 */
#include <sched.h>

#include "../target.h"

enum {
    LONE = 5,
    HOLD_MS = 20,
    SLEPT_ON = 2 /* glibc's mutex word while a thread sleeps on the mutex */
};

pthread_mutex_t g_lone = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_met = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_mutex_t g_across = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t taken, given;
static int waiter_tid;
static double met_s, again_s;

static void *waiter(void *argument)
{
    waiter_tid = own_tid();
    for (;;) {
        pthread_barrier_wait(&taken);
        pthread_mutex_lock(&g_met);
        pthread_mutex_unlock(&g_met);
        pthread_barrier_wait(&given);
    }
    return argument;
}

static KEPT void take_alone(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
}

static KEPT void take_while_wanted(void)
{
    pthread_mutex_lock(&g_met);
    double before = now();
    pthread_barrier_wait(&taken);
    while (__atomic_load_n(&g_met.__data.__lock, __ATOMIC_ACQUIRE) != SLEPT_ON)
        sched_yield();
    pause_ms(HOLD_MS);
    met_s = now() - before;
    pthread_mutex_unlock(&g_met);
    pthread_barrier_wait(&given);
}

static KEPT void take_again(void)
{
    double before = now();
    pthread_mutex_lock(&g_again);
    pthread_mutex_lock(&g_again);
    pause_ms(HOLD_MS);
    pthread_mutex_unlock(&g_again);
    pause_ms(HOLD_MS);
    pthread_mutex_unlock(&g_again);
    again_s = now() - before;
}

int main(void)
{
    char text[300];
    pthread_barrier_init(&taken, NULL, 2);
    pthread_barrier_init(&given, NULL, 2);
    start(waiter, NULL, "waiter");
    pthread_mutex_lock(&g_across);
    say("ready");
    for (;;) {
        hear();
        for (int i = 0; i < LONE; i++)
            take_alone(&g_lone);
        take_alone(&g_met);
        take_while_wanted();
        take_alone(&g_met);
        take_again();
        pthread_mutex_unlock(&g_across);
        pthread_mutex_lock(&g_across);
        snprintf(text, sizeof text,
                 "{\"holder\": %d, \"waiter\": %d, \"lone\": %d, \"met_s\": %.9f, "
                 "\"again_s\": %.9f}",
                 own_tid(), waiter_tid, LONE, met_s, again_s);
        say(text);
    }
}
