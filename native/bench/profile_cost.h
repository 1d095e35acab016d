/* The cost of a profile of the program's own code (locktop.h). */
#ifndef BENCH_PROFILE_COST_H
#define BENCH_PROFILE_COST_H

#include <stdint.h>

/* Prints the sources of a clock as JSON: name, number, intervals in ns, whether it is there. */
int list_clocks(void);

/* Does the same work `pairs` times without and with a profile of it, in turns. Prints the times as
 * JSON. */
int profile_cost(int source, uint64_t interval, unsigned pairs);

#endif
