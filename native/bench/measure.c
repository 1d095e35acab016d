/* The ways to measure: in one thread, in turns of two threads, in fights of many. */
#include "measure.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCHES_MIN = 20, BATCHES_MAX = 1 << 16, BATCH_NS = 100000, BATCH_TRIES = 3 };
enum { WARM_UP_SHARE = 5, FIGHTERS_MAX = 64 };
enum { ROWS = 32, PAIRS = 256 };

static const double UNDISTURBED = 0.1;

static double batch_ns[BATCHES_MAX], batch_ticks[BATCHES_MAX];

uint64_t ticks_now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#endif
}

struct moment moment(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (struct moment){(uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec,
                           ticks_now()};
}

/* The best time of a row of pairs of atomic exchanges, with or without a reading in each pair. */
static double quickest_row(bool reading)
{
    static atomic_int word;
    double quickest = 0;
    for (int row = 0; row < ROWS; row++) {
        struct moment before = moment();
        for (int i = 0; i < PAIRS; i++) {
            atomic_exchange(&word, 1);
            if (reading)
                ticks_now();
            atomic_exchange(&word, 0);
        }
        double took = (double)(moment().ns - before.ns);
        if (row == 0 || took < quickest)
            quickest = took;
    }
    return quickest;
}

double ticks_reading_ns(void)
{
    return (quickest_row(true) - quickest_row(false)) / PAIRS;
}

double work_step_ns(void)
{
    enum { STEPS = 1 << 16 };
    double quickest = 0;
    uint64_t value = 1;
    for (int row = 0; row < ROWS; row++) {
        struct moment before = moment();
        value = work(value, STEPS);
        double took = (double)(moment().ns - before.ns);
        if (row == 0 || took < quickest)
            quickest = took;
    }
    return quickest / STEPS;
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double quantile(double *figures, unsigned count, double share)
{
    qsort(figures, count, sizeof *figures, ascending);
    return figures[(unsigned)((count - 1) * share)];
}

pthread_t start_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run, argument);
    if (error) {
        fprintf(stderr, "locktop-bench: cannot start a thread: %s\n", strerror(error));
        exit(1);
    }
    return thread;
}

bool has_two_cpus(void)
{
    cpu_set_t usable;
    return sched_getaffinity(0, sizeof usable, &usable) == 0 && CPU_COUNT(&usable) >= 2;
}

/* The first or the second CPU that the process may use, -1 if it may use only one. */
static int usable_cpu(int which)
{
    cpu_set_t usable;
    if (!has_two_cpus() || sched_getaffinity(0, sizeof usable, &usable) != 0)
        return -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((unsigned)cpu, &usable) && which-- == 0)
            return cpu;
    return -1;
}

static void stay_on(int cpu)
{
    cpu_set_t set;
    if (cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void stay_on_cpu(int which)
{
    stay_on(usable_cpu(which));
}

/* ---- one thread ---- */

struct batches {
    void (*batch)(unsigned n);
    double seconds;
    uint64_t done; /* operations */
    struct cost cost;
};

static struct cost one_batch(struct batches *self, unsigned n)
{
    struct moment before = moment();
    self->batch(n);
    struct moment after = moment();
    self->done += n;
    return (struct cost){(double)(after.ns - before.ns), (double)(after.ticks - before.ticks)};
}

/* Whether n operations take BATCH_NS. One interruption does not prove that, so all tries must. */
static bool takes_long_enough(struct batches *self, unsigned n)
{
    for (int i = 0; i < BATCH_TRIES; i++)
        if (one_batch(self, n).ns < BATCH_NS)
            return false;
    return true;
}

/* The number of operations that take BATCH_NS. */
static unsigned batch_size(struct batches *self)
{
    unsigned n = 1;
    while (!takes_long_enough(self, n))
        n *= 2;
    return n;
}

static void run_batches(struct batches *self)
{
    uint64_t duration = (uint64_t)(self->seconds * 1e9), start = moment().ns;
    unsigned n = batch_size(self), count = 0;
    while (moment().ns - start < duration / WARM_UP_SHARE)
        one_batch(self, n);
    start = moment().ns;
    do {
        struct cost cost = one_batch(self, n);
        batch_ns[count] = cost.ns / n;
        batch_ticks[count++] = cost.ticks / n;
    } while (count < BATCHES_MIN || (count < BATCHES_MAX && moment().ns - start < duration));
    self->cost = (struct cost){quantile(batch_ns, count, UNDISTURBED),
                               quantile(batch_ticks, count, UNDISTURBED)};
}

static void *batches_thread(void *argument)
{
    run_batches(argument);
    return NULL;
}

struct cost measure_batches(void (*batch)(unsigned n), double seconds)
{
    struct batches batches = {.batch = batch, .seconds = seconds};
    pthread_join(start_thread(batches_thread, &batches), NULL);
    return batches.cost;
}

/* ---- two threads in turns ---- */

static void (*take_turn)(int side);
static _Atomic uint64_t last_turn = UINT64_MAX;

static void turns(unsigned n)
{
    while (n--)
        take_turn(0);
}

static void *other_side(void *argument)
{
    stay_on_cpu(1);
    for (uint64_t done = 0; done != atomic_load_explicit(&last_turn, memory_order_relaxed); done++)
        take_turn(1);
    return argument;
}

/* The other side is never a turn ahead. So it reaches the last turn after it has learnt the
 * number. */
static void *this_side(void *argument)
{
    struct batches *self = argument;
    stay_on_cpu(0);
    run_batches(self);
    atomic_store(&last_turn, self->done + 1);
    take_turn(0);
    return NULL;
}

struct cost measure_turns(void (*turn)(int side), double seconds)
{
    struct batches batches = {.batch = turns, .seconds = seconds};
    take_turn = turn;
    pthread_t other = start_thread(other_side, NULL);
    pthread_join(start_thread(this_side, &batches), NULL);
    pthread_join(other, NULL);
    return batches.cost;
}

/* ---- many threads at once ---- */

_Alignas(CACHE_LINE) atomic_bool fight_over;
static pthread_barrier_t fight_begins;

static void *fighter_thread(void *argument)
{
    struct fighter *self = argument;
    stay_on(self->cpu);
    pthread_barrier_wait(&fight_begins);
    self->fight(self);
    return NULL;
}

struct cost measure_fight(void (*fight)(struct fighter *self), unsigned threads, double seconds)
{
    static struct fighter fighters[FIGHTERS_MAX];
    pthread_t ids[FIGHTERS_MAX];
    pthread_barrier_init(&fight_begins, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++) {
        fighters[i] = (struct fighter){.fight = fight, .cpu = usable_cpu((int)i % 2)};
        ids[i] = start_thread(fighter_thread, &fighters[i]);
    }
    pthread_barrier_wait(&fight_begins);
    struct moment before = moment();
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    nanosleep(&time, NULL);
    atomic_store(&fight_over, true);
    double done = 0;
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        done += (double)fighters[i].done;
    }
    struct moment after = moment();
    return (struct cost){(double)(after.ns - before.ns) / done,
                         (double)(after.ticks - before.ticks) / done};
}
