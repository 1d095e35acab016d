/* Four threads take one mutex again and again, for so many seconds. Each hold sleeps for a number
 * of microseconds (s5000), or counts to a number (c1000).
 *
 *     timed_holds HOLD SECONDS
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, NS = 1000000000 };

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static char work;
static long amount;
static int64_t end_ns;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS + now.tv_nsec;
}

static void spend(void)
{
    if (work == 's') {
        struct timespec length = {amount / 1000000, amount % 1000000 * 1000};
        nanosleep(&length, NULL);
        return;
    }
    for (volatile long left = amount; left > 0; left--) {
    }
}

static void *take_turns(void *unused)
{
    (void)unused;
    do {
        pthread_mutex_lock(&g_lock);
        spend();
        pthread_mutex_unlock(&g_lock);
        spend();
    } while (now_ns() < end_ns);
    return NULL;
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    work = arguments[1][0];
    amount = strtol(arguments[1] + 1, NULL, 10);
    end_ns = now_ns() + (int64_t)(strtod(arguments[2], NULL) * NS);
    pthread_t threads[THREADS];
    for (int number = 0; number < THREADS; number++)
        pthread_create(&threads[number], NULL, take_turns, NULL);
    for (int number = 0; number < THREADS; number++)
        pthread_join(threads[number], NULL);
    return 0;
}
