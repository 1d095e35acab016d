/* Threads lock and unlock at a pace: each its own mutex, and sometimes a mutex that all share.
 *
 * paced_pairs THREADS PAIRS PAIRS_A_SECOND SHARED_PERCENT [SHARED_US]
 *
 * "ready"; after a line each thread makes PAIRS pairs. The program says how many pairs it made, and
 * stays until the next line. PAIRS_A_SECOND counts all threads; 0 is no pause. A thread holds its
 * own mutex for up to OWN_LOOPS empty loops. A thread that holds the shared mutex sleeps SHARED_US.
 */
#include "../target.h"

enum { THREADS_MAX = 64, BURST = 200, OWN_LOOPS = 32 };

static pthread_mutex_t own[THREADS_MAX], shared = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begin;
static unsigned long pairs, shared_percent;
static unsigned shared_us;
static double pace; /* pairs a second of one thread */

static KEPT void pair(pthread_mutex_t *mutex, int loops, unsigned us)
{
    pthread_mutex_lock(mutex);
    for (volatile int i = 0; i < loops; i++)
        continue;
    if (us)
        usleep(us);
    pthread_mutex_unlock(mutex);
}

static KEPT void wait_for_turn(unsigned long done, double began)
{
    double ahead_s = pace > 0 ? (double)done / pace - (now() - began) : 0;
    if (ahead_s > 0)
        usleep((useconds_t)(ahead_s * 1e6));
}

static KEPT void *work(void *argument)
{
    pthread_mutex_t *mine = argument;
    unsigned seed = (unsigned)(mine - own) + 1;
    pthread_barrier_wait(&begin);
    double began = now();
    for (unsigned long i = 0; i < pairs; i++) {
        int number = rand_r(&seed);
        if ((unsigned)number / 64 % 100 < shared_percent)
            pair(&shared, 0, shared_us);
        else
            pair(mine, number % OWN_LOOPS, 0);
        if (i % BURST == BURST - 1)
            wait_for_turn(i + 1, began);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    unsigned threads = count >= 5 ? (unsigned)atoi(arguments[1]) : 0;
    pthread_t thread[THREADS_MAX];
    char line[64];
    if (threads < 1 || threads > THREADS_MAX)
        return 2;
    pairs = strtoul(arguments[2], NULL, 10);
    pace = atof(arguments[3]) / threads;
    shared_percent = strtoul(arguments[4], NULL, 10);
    shared_us = count > 5 ? (unsigned)atoi(arguments[5]) : 0;
    must(pthread_barrier_init(&begin, NULL, threads + 1), "pthread_barrier_init");
    for (unsigned i = 0; i < threads; i++) {
        must(pthread_mutex_init(&own[i], NULL), "pthread_mutex_init");
        thread[i] = start(work, &own[i], "worker");
    }
    say("ready");
    hear();
    pthread_barrier_wait(&begin);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    snprintf(line, sizeof line, "{\"pairs\": %lu}", pairs * threads);
    say(line);
    hear();
    return 0;
}
