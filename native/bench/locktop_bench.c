/* locktop-bench: what a pair of pthread_mutex_lock and pthread_mutex_unlock costs, here and now.
 *
 * Prints one line of JSON:
 *   uncontended_ns      one thread, one mutex; the median of many batches
 *   contended_ns        two threads fight for one mutex: wall time for each pair, work included
 *   contended_pairs_s   the same as a rate
 *
 * The fighters work for some 35 ns with the mutex and twice as long without. With no work at all
 * there is hardly a fight: whoever has the mutex gets it again, thousands of times in a row, and
 * the figure is that of the uncontended pair with more noise.
 *
 * It is run with and without the library, and compared; see collector/bench.py.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 100000, BATCHES_MAX = 1 << 16, FIGHTERS = 2, LINE = 64, WARM_UP = 8 };
enum { WORK_WITH = 32, WORK_WITHOUT = 64 }; /* steps of work(), about a nanosecond each */

static double seconds = 1.0;
static double batch_ns[BATCHES_MAX];
static double uncontended_ns;

static pthread_mutex_t lonely = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(LINE) pthread_mutex_t wanted = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(LINE) uint64_t guarded;
static _Alignas(LINE) atomic_bool stop;
static pthread_barrier_t start;

struct fighter {
    _Alignas(LINE) uint64_t pairs;
    int cpu;
};
static struct fighter fighters[FIGHTERS];

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double one_batch(void)
{
    uint64_t before = now_ns();
    for (int i = 0; i < BATCH; i++) {
        pthread_mutex_lock(&lonely);
        pthread_mutex_unlock(&lonely);
    }
    return (double)(now_ns() - before) / BATCH;
}

/* In a second thread: in a program with one alone libc leaves the atomic instruction out, and no
 * such program needs locks. */
static void *measure_uncontended(void *argument)
{
    uint64_t deadline = now_ns() + (uint64_t)(seconds * 1e9);
    int count = 0;
    for (int i = 0; i < WARM_UP; i++)
        one_batch();
    while (count < BATCHES_MAX && (count == 0 || now_ns() < deadline))
        batch_ns[count++] = one_batch();
    qsort(batch_ns, (size_t)count, sizeof *batch_ns, ascending);
    uncontended_ns = batch_ns[count / 2];
    return argument;
}

/* The n-th CPU that this process may use, -1 if there are fewer. */
static int usable_cpu(int n)
{
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable) != 0)
        return -1;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &usable) && n-- == 0)
            return (int)cpu;
    return -1;
}

static void stay_on(unsigned cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

/* Each step needs the result of the one before. */
static uint64_t work(uint64_t value, int steps)
{
    for (int i = 0; i < steps; i++) {
        value = value * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(value)); /* as many steps as written, used or not */
    }
    return value;
}

static void *fight(void *argument)
{
    struct fighter *self = argument;
    uint64_t own = 0;
    if (self->cpu >= 0)
        stay_on((unsigned)self->cpu);
    pthread_barrier_wait(&start);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        pthread_mutex_lock(&wanted);
        guarded = work(guarded, WORK_WITH);
        pthread_mutex_unlock(&wanted);
        own = work(own, WORK_WITHOUT);
        self->pairs++;
    }
    return NULL;
}

static pthread_t start_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run, argument);
    if (error) {
        fprintf(stderr, "locktop-bench: cannot start a thread: %s\n", strerror(error));
        exit(1);
    }
    return thread;
}

/* Returns pairs a second of all together. */
static double measure_contended(void)
{
    pthread_t threads[FIGHTERS];
    pthread_barrier_init(&start, NULL, FIGHTERS + 1);
    for (int i = 0; i < FIGHTERS; i++) {
        fighters[i].cpu = usable_cpu(i);
        threads[i] = start_thread(fight, &fighters[i]);
    }
    pthread_barrier_wait(&start);
    uint64_t before = now_ns();
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    nanosleep(&time, NULL);
    atomic_store(&stop, true);
    uint64_t pairs = 0;
    for (int i = 0; i < FIGHTERS; i++)
        pthread_join(threads[i], NULL);
    uint64_t elapsed = now_ns() - before;
    for (int i = 0; i < FIGHTERS; i++)
        pairs += fighters[i].pairs;
    return (double)pairs * 1e9 / (double)elapsed;
}

int main(int argc, char **argv)
{
    char *end = "";
    if (argc == 3 && !strcmp(argv[1], "--seconds"))
        seconds = strtod(argv[2], &end);
    if ((argc != 1 && argc != 3) || *end || !(seconds > 0.0 && seconds <= 3600.0)) {
        fputs("usage: locktop-bench [--seconds S]   S for each of the two parts\n", stderr);
        return 2;
    }
    pthread_join(start_thread(measure_uncontended, NULL), NULL);
    double rate = measure_contended();
    printf("{\"uncontended_ns\": %.3f, \"contended_ns\": %.3f, \"contended_pairs_s\": %.0f}\n",
           uncontended_ns, 1e9 / rate, rate);
    return 0;
}
