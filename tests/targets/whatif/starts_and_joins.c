/* A thread starts others again and again, and waits for their ends.
 *
 * starts_and_joins THREADS HOLD_US sleep|compute|both
 *
 * Each started thread works for a millisecond, takes a mutex, works for HOLD_US and releases the
 * mutex, five times. To work is to sleep or to compute. With "both", threads sleep without the
 * mutex and compute with it.
 *
 * "ready". At each line the program says how many rounds of starts it has made, and for how long it
 * runs.
 */
#include <stdatomic.h>
#include <sys/prctl.h>

#include "../target.h"

enum { MOST = 64, TIMES = 5 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_ulong rounds;
static int threads, hold_us;
static int computes, computes_in_hold;

static void sleep_us(long us)
{
    struct timespec time = {.tv_nsec = us * 1000};
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        continue;
}

static long cpu_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void work_us(long us, int by_computing)
{
    if (!by_computing) {
        sleep_us(us);
        return;
    }
    for (long end = cpu_us() + us; cpu_us() < end;)
        continue;
}

static void *work(void *unused)
{
    prctl(PR_SET_TIMERSLACK, 1);
    for (int i = 0; i < TIMES; i++) {
        work_us(1000, computes);
        pthread_mutex_lock(&mutex);
        work_us(hold_us, computes_in_hold);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void *repeat(void *unused)
{
    for (;;) {
        pthread_t started[MOST];
        for (int i = 0; i < threads; i++)
            must(pthread_create(&started[i], NULL, work, NULL), "pthread_create");
        for (int i = 0; i < threads; i++)
            must(pthread_join(started[i], NULL), "pthread_join");
        atomic_fetch_add(&rounds, 1);
    }
    return unused;
}

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    threads = atoi(arguments[1]);
    hold_us = atoi(arguments[2]);
    computes = strcmp(arguments[3], "compute") == 0;
    computes_in_hold = strcmp(arguments[3], "sleep") != 0;
    start(repeat, NULL, "starter");
    double began = now();
    say("ready");
    for (;;) {
        char line[128];
        hear();
        snprintf(line, sizeof line, "{\"rounds\": [%lu], \"seconds\": %.9f}", atomic_load(&rounds),
                 now() - began);
        say(line);
    }
}
