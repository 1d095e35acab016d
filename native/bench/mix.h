/* A known mix of acquisitions, which shows how the trace grows. */
#ifndef BENCH_MIX_H
#define BENCH_MIX_H

/* Two threads use one mutex. In each cycle the first thread takes it `share` - 1 times. The first
 * thread makes the last release only when the second thread waits. So one acquisition of `share`
 * waits, and one more is of a mutex for which a thread waits. Both threads live on, so that a
 * reader finds their counters. */
void run_mix(unsigned share, unsigned cycles);

#endif
