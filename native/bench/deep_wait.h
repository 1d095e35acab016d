/* Measures a contended wait for a mutex without the sleep, and initialisations of a mutex. The
 * stack has 13 frames, and is known. */
#ifndef BENCH_DEEP_WAIT_H
#define BENCH_DEEP_WAIT_H

#include "measure.h"

/* Two threads: measures from the call of the lock until the mutex shows a waiter, and the unlock
 * afterwards. The sleep in between leaves little in the processor's caches. */
struct cost measure_deep_wait(double seconds);

/* One thread: waits that give up at once. */
void deep_timeout_set_up(void);
void deep_timeout_batch(unsigned n);

/* One thread: mutexes that live for a moment. */
void deep_init_batch(unsigned n);

#endif
