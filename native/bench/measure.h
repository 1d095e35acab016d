/* How the benchmark measures: both clocks, batches in one thread, turns of two threads, fights of
 * many threads. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { CACHE_LINE = 64 };

/* One moment on both clocks. */
struct moment {
    uint64_t ns;    /* CLOCK_MONOTONIC */
    uint64_t ticks; /* the processor's counter */
};

/* The cost of one operation, in wall time. */
struct cost {
    double ns;
    double ticks;
};

/* One thread of a fight: all threads use one lock at once. */
struct fighter {
    _Alignas(CACHE_LINE) uint64_t done;  /* operations */
    void (*fight)(struct fighter *self); /* until fight_is_over() */
    int cpu;
};

struct moment moment(void);
uint64_t ticks_now(void);

/* The time that a reading of the processor's counter adds to a lock and an unlock, at best. */
double ticks_reading_ns(void);

/* The figure below which `share` of all figures lie: 0.5 for the median. Sorts the figures. */
double quantile(double *figures, unsigned count, double share);

/* Some nanoseconds for each step; each step needs the result of the step before. */
static inline uint64_t work(uint64_t value, int steps)
{
    for (int i = 0; i < steps; i++) {
        value = value * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(value)); /* as many steps as written, used or not */
    }
    return value;
}

/* The time of one step at best, of CLOCK_MONOTONIC. */
double work_step_ns(void);

pthread_t start_thread(void *(*run)(void *), void *argument);

bool has_two_cpus(void);

/* Ties the calling thread to the first or the second CPU that the process may use. Does nothing if
 * the process may use only one. */
void stay_on_cpu(int which);

/* `batch` does n operations. Returns the tenth percentile of many batches: other work of the
 * machine makes a batch longer, never shorter. Runs in a second thread. In a program with one
 * thread libc leaves out the atomic instruction, and no such program needs locks. */
struct cost measure_batches(void (*batch)(unsigned n), double seconds);

/* Two threads take turns as side 0 and side 1, each on a CPU of its own. Returns the cost of one
 * turn of both. */
struct cost measure_turns(void (*turn)(int side), double seconds);

/* All threads fight at once, on two CPUs. Returns the cost of one operation of all threads
 * together. */
struct cost measure_fight(void (*fight)(struct fighter *self), unsigned threads, double seconds);

extern atomic_bool fight_over;

static inline bool fight_is_over(void)
{
    return atomic_load_explicit(&fight_over, memory_order_relaxed);
}

#endif
