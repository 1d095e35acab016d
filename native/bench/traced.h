/* Calls of a function that was built with -finstrument-functions. */
#ifndef BENCH_TRACED_H
#define BENCH_TRACED_H

/* Calls the function n times. */
void traced_batch(unsigned n);

#endif
