/* Samplers: what takes the samples of one profile in one thread. Each has a timer of the thread's
 * CPU time, whose signal the thread gets. The signal handler counts the interrupted instruction, or
 * it counts what the kernel wrote into the sampler's ring. */
#ifndef LOCKTOP_SAMPLERS_H
#define LOCKTOP_SAMPLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "profiling/profile.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* The number of samplers in use. */
extern uint32_t samplers_in_use;

/* Chooses a signal and installs the handler, unless that is done; LOCKTOP_OK or LOCKTOP_NO_SIGNAL.
 * `blocked`: signals that the calling thread blocks, as a mask of bits. */
int samplers_take_signal(uint64_t blocked);

/* Whether the handler of the signal is still the library's. True before there is one. */
bool samplers_have_signal(void);

/* Makes a sampler for a thread; LOCKTOP_OK, or the code that says why not. */
int sampler_add(struct profile *profile, uint32_t tid, uint64_t blocked);

/* Whether the profile has a sampler for this thread. */
bool sampler_exists(const struct profile *profile, uint32_t tid);

/* Ends samplers: all of a profile or of a thread. */
void samplers_end_profile(const struct profile *profile);
void samplers_end_thread(uint32_t tid);

/* Ends the samplers of dead threads. */
void samplers_end_dead(void);
bool sampler_thread_is_gone(uint32_t tid);

/* Counts what the kernel wrote for a profile until now. */
void samplers_drain(const struct profile *profile);

/* Forgets all samplers, in a forked child: there are none. */
void samplers_forget(void);

/* The signals that a thread of this process blocks; all, if that is not known. */
uint64_t samplers_blocked_by(uint32_t tid);

#pragma GCC visibility pop

#endif
