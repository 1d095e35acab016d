/* A known mix of acquisitions, for the growth of the trace. */
#ifndef BENCH_MIX_H
#define BENCH_MIX_H

/* Two threads and one mutex. In each of `cycles` the first one takes it `share` - 1 times, and gives
 * it back the last time only when the second one waits for it: one acquisition of `share` waits, and
 * one more is of a lock that somebody waits for. Both threads live on, for their counters to be read. */
void run_mix(unsigned share, unsigned cycles);

#endif
