/* A thread waits for a mutex inside of a function, and for a condition inside of another one. The
 * program says how long each call took, in mid-wait and again at its end. Built with
 * -finstrument-functions. */
#include <stdbool.h>

#include "../target.h"

#define PLAIN __attribute__((no_instrument_function))
#define OWN   __attribute__((noinline, noclone))

pthread_mutex_t g_fought = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool signalled;
static volatile int waiter_tid, rounds;
static double waited_s;

static OWN void takes(void)
{
    pthread_mutex_lock(&g_fought);
    pthread_mutex_unlock(&g_fought);
}

static OWN void works(void)
{
    pause_ms(1);
    takes();
}

static OWN void waits_for_condition(void)
{
    pthread_mutex_lock(&mutex);
    while (!signalled)
        pthread_cond_wait(&condition, &mutex);
    signalled = false;
    pthread_mutex_unlock(&mutex);
}

static OWN void one_round(void)
{
    double begin = now();
    works();
    waited_s += now() - begin;
    waits_for_condition();
}

static void *wait_often(void *unused)
{
    waiter_tid = own_tid();
    for (; rounds < 3; rounds++)
        one_round();
    hear(); /* stays alive for the scan */
    return unused;
}

static PLAIN void until_asleep(void)
{
    while (!waiter_tid || !is_asleep(waiter_tid))
        pause_ms(1);
}

static PLAIN void signal_once(void)
{
    pthread_mutex_lock(&mutex);
    signalled = true;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
}

PLAIN int main(void)
{
    pthread_mutex_lock(&g_fought);
    pthread_t waiter = start(wait_often, NULL, "waiter");
    for (int round = 0; round < 3; round++) {
        pause_ms(20);
        until_asleep();
        if (round == 0) {
            say("in mid-wait");
            hear();
        }
        pthread_mutex_unlock(&g_fought);
        pause_ms(20);
        until_asleep();
        pthread_mutex_lock(&g_fought);
        signal_once();
    }
    while (rounds < 3)
        pause_ms(1);
    printf("{\"tid\": %d, \"seconds\": %.9f}\n", waiter_tid, waited_s);
    fflush(stdout);
    pthread_join(waiter, NULL);
    return 0;
}
