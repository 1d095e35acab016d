/* 200 threads and 1,000 locks, with as many contended acquisitions a second as the machine allows.
 * All threads fight for a few locks at a time, and the few move on through all locks.
 *
 * Says "ready" when all threads run. At a line all threads stop, and the program says the truth
 * while they still live. At the next line the threads end, and the program says "joined". The
 * locks themselves guard the counts, so the counts are exact.
 */
#include <sched.h>
#include <stdatomic.h>

#include "../target.h"

enum { THREADS = 200, LOCKS = 1000, AT_A_TIME = 16, STEP = 4096, YIELD_EVERY = 4 };

struct counted {
    pthread_mutex_t lock;
    unsigned long acquisitions;
};
struct counted g_table[LOCKS];

struct worker {
    int tid;
    unsigned long acquisitions;
    unsigned random;
};
static struct worker workers[THREADS];
static atomic_ulong turns;
static atomic_int stop;
static pthread_barrier_t everybody_runs, everybody_stopped;
static int gate[2]; /* a pipe: a thread that reads it waits for no lock */

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static KEPT void take_one(struct worker *self)
{
    unsigned long window = atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed) / STEP;
    unsigned random = next_random(&self->random);
    struct counted *one = &g_table[(window * AT_A_TIME + random % AT_A_TIME) % LOCKS];
    pthread_mutex_lock(&one->lock);
    one->acquisitions++;
    if (random / AT_A_TIME % YIELD_EVERY == 0)
        sched_yield(); /* so that the other threads meet the held lock */
    pthread_mutex_unlock(&one->lock);
    self->acquisitions++;
}

static void *loop(void *argument)
{
    struct worker *self = argument;
    self->tid = own_tid();
    pthread_barrier_wait(&everybody_runs);
    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        take_one(self);
    pthread_barrier_wait(&everybody_stopped);
    char c;
    while (read(gate[0], &c, 1) > 0)
        continue;
    return NULL;
}

static void say_truth(void)
{
    static char text[(LOCKS + THREADS) * 64];
    int at = snprintf(text, sizeof text, "{\"locks\": {");
    for (int i = 0; i < LOCKS; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s\"%p\": %lu", i ? ", " : "",
                       (void *)&g_table[i].lock, g_table[i].acquisitions);
    at += snprintf(text + at, sizeof text - (size_t)at, "}, \"threads\": {");
    for (int i = 0; i < THREADS; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s\"%d\": %lu", i ? ", " : "",
                       workers[i].tid, workers[i].acquisitions);
    snprintf(text + at, sizeof text - (size_t)at, "}}");
    say(text);
}

int main(void)
{
    pthread_t threads[THREADS];
    must(pipe(gate) ? errno : 0, "pipe");
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_init(&g_table[i].lock, NULL);
    pthread_barrier_init(&everybody_runs, NULL, THREADS + 1);
    pthread_barrier_init(&everybody_stopped, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        workers[i].random = (unsigned)i * 7919u + 1;
        threads[i] = start(loop, &workers[i], NULL);
    }
    pthread_barrier_wait(&everybody_runs);
    say("ready");
    hear();
    atomic_store(&stop, 1);
    pthread_barrier_wait(&everybody_stopped);
    say_truth();
    hear();
    close(gate[1]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    say("joined");
    hear();
    return 0;
}
