/* Four threads fight for one mutex with priority inheritance, and each holds the mutex for 1 ms at
 * a time. The kernel hands such a mutex over: the new owner runs later.
 */
#include "../target.h"

enum { THREADS = 4 };
pthread_mutex_t g_bus_lock;
static pthread_barrier_t everybody_runs;

static KEPT void use_bus(void)
{
    pthread_mutex_lock(&g_bus_lock);
    pause_ms(1);
    pthread_mutex_unlock(&g_bus_lock);
}

static void *loop(void *argument)
{
    pthread_barrier_wait(&everybody_runs);
    for (;;)
        use_bus();
    return argument;
}

int main(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    must(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT), "PRIO_INHERIT");
    must(pthread_mutex_init(&g_bus_lock, &attributes), "pthread_mutex_init");
    pthread_barrier_init(&everybody_runs, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        start(loop, NULL, NULL);
    pthread_barrier_wait(&everybody_runs);
    say("ready");
    hear();
    return 0;
}
