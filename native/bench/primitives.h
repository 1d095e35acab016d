/* The measurements: everything that threads wait for, in one thread and in several. */
#ifndef BENCH_PRIMITIVES_H
#define BENCH_PRIMITIVES_H

#include "measure.h"

/* One measured operation. The ways in which it can be measured are set, the others are NULL. */
struct primitive {
    const char *name;
    const char *operation;
    void (*set_up)(void);
    void (*batch)(unsigned n);                  /* one thread */
    void (*turn)(int side);                     /* two threads, one after the other */
    void (*fight)(struct fighter *self);        /* two or more, at once */
    struct cost (*measure_two)(double seconds); /* two threads, measured in a way of its own */
    bool (*is_there)(void);                     /* whether this libc has the functions */
};

extern const struct primitive primitives[];
extern const unsigned primitive_count;

/* Steps of work() that a fighter does while it has the lock, and without the lock. */
struct fight_work {
    int with, without;
};
extern struct fight_work fight_work;

/* Numbers of threads: as many as CPUs, and more. */
enum { FEW = 2, MANY = 8 };

/* Whether it can be measured with so many threads: threads that run at once need two CPUs. */
bool can_run_with(const struct primitive *primitive, unsigned threads);
struct cost measure(const struct primitive *primitive, unsigned threads, double seconds);

#endif
