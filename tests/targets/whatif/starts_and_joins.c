/* A thread starts others again and again, and waits for their ends.
 *
 * starts_and_joins THREADS HOLD_US
 *
 * Each started thread sleeps for a millisecond, takes a mutex, sleeps for HOLD_US and releases the
 * mutex, five times. "ready"; at each line the program says how many rounds of starts it has made.
 * The line also says for how long the program runs.
 */
#include <stdatomic.h>
#include <sys/prctl.h>

#include "../target.h"

enum { MOST = 64, TIMES = 5 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_ulong rounds;
static int threads, hold_us;

static void sleep_us(long us)
{
    struct timespec time = {.tv_nsec = us * 1000};
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        continue;
}

static void *work(void *unused)
{
    prctl(PR_SET_TIMERSLACK, 1);
    for (int i = 0; i < TIMES; i++) {
        sleep_us(1000);
        pthread_mutex_lock(&mutex);
        sleep_us(hold_us);
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
    if (count != 3)
        return 2;
    threads = atoi(arguments[1]);
    hold_us = atoi(arguments[2]);
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
