/* How the benchmark measures: both clocks, batches in one thread, turns of two, fights of many. */
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

/* What one operation takes, wall time. */
struct cost {
    double ns;
    double ticks;
};

/* One thread of a fight. */
struct fighter {
    _Alignas(CACHE_LINE) uint64_t done;  /* operations */
    void (*fight)(struct fighter *self); /* until fight_is_over() */
    int cpu;
};

struct moment moment(void);
uint64_t ticks_now(void);

/* What a reading of the processor's counter adds to a lock and an unlock, at best. */
double ticks_reading_ns(void);

/* The figure that `share` of all are below, e.g. 0.5 for the median; sorts them. */
double quantile(double *figures, unsigned count, double share);

/* Some nanosecond for each step; each needs the result of the one before. */
static inline uint64_t work(uint64_t value, int steps)
{
    for (int i = 0; i < steps; i++) {
        value = value * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(value)); /* as many steps as written, used or not */
    }
    return value;
}

pthread_t start_thread(void *(*run)(void *), void *argument);

bool has_two_cpus(void);

/* Ties the calling thread to the first or the second CPU that the process may use; where there is
 * one alone nothing is done. */
void stay_on_cpu(int which);

/* `batch` does n operations. The tenth percentile of many batches: whatever else the machine does makes
 * a batch longer, never shorter. In a second thread: in a program with one alone libc leaves the atomic
 * instruction out, and no such program needs locks. */
struct cost measure_batches(void (*batch)(unsigned n), double seconds);

/* Two threads take turns, each on a CPU of its own: side 0 and side 1. What one turn of both takes. */
struct cost measure_turns(void (*turn)(int side), double seconds);

/* All fight at once, on two CPUs; what one operation of all together takes. */
struct cost measure_fight(void (*fight)(struct fighter *self), unsigned threads, double seconds);

extern atomic_bool fight_over;

static inline bool fight_is_over(void)
{
    return atomic_load_explicit(&fight_over, memory_order_relaxed);
}

#endif
