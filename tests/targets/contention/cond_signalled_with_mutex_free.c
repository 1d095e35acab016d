/* A thread waits for a condition again and again. Each time the main thread gives the mutex
 * back and then wakes the thread. The main thread touches the mutex no more until the thread sleeps
 * again. So no thread ever waits for the mutex.
 */
#include <sched.h>

#include "../target.h"

enum { ROUNDS = 200 };
static pthread_mutex_t g_free = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int wanted, done, sleeper;

static void *waits(void *argument)
{
    pthread_mutex_lock(&g_free);
    __atomic_store_n(&sleeper, own_tid(), __ATOMIC_RELEASE);
    for (int round = 0; round < ROUNDS; round++) {
        while (wanted <= round)
            pthread_cond_wait(&cond, &g_free);
        __atomic_store_n(&done, round + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&g_free);
    return argument;
}

int main(void)
{
    pthread_t thread = start(waits, NULL, "waits");
    while (!__atomic_load_n(&sleeper, __ATOMIC_ACQUIRE))
        pause_ms(1);
    for (int round = 0; round < ROUNDS; round++) {
        while (!is_asleep(sleeper))
            sched_yield();
        pthread_mutex_lock(&g_free);
        wanted = round + 1;
        pthread_mutex_unlock(&g_free);
        pthread_cond_signal(&cond);
        while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) <= round)
            sched_yield();
    }
    pthread_join(thread, NULL);
    say("{}");
    hear();
    return 0;
}
