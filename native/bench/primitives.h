/* What is measured: everything that threads wait for, alone and with others. */
#ifndef BENCH_PRIMITIVES_H
#define BENCH_PRIMITIVES_H

#include "measure.h"

/* What one can do with it is set, the rest NULL. */
struct primitive {
    const char *name;
    const char *operation;
    void (*set_up)(void);
    void (*batch)(unsigned n);                  /* one thread */
    void (*turn)(int side);                     /* two threads, one after the other */
    void (*fight)(struct fighter *self);        /* two or more, at once */
    struct cost (*measure_two)(double seconds); /* two threads, in a way of its own */
};

extern const struct primitive primitives[];
extern const unsigned primitive_count;

/* Two CPUs, more threads than CPUs. */
enum { FEW = 2, MANY = 8 };

/* What runs at once needs two CPUs. */
bool can_run_with(const struct primitive *primitive, unsigned threads);
struct cost measure(const struct primitive *primitive, unsigned threads, double seconds);

#endif
