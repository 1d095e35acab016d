/* The moment between two waits. A thread that wakes from pthread_cond_wait() takes its mutex back
 * inside libc, where no hook sees that. If another thread has the mutex, the rest of the call is a
 * wait for the mutex.
 *
 * The thread that signals knows the moment. At once the library counts the woken threads as waiters
 * of the mutex. So releases of the mutex are charged with their waits (account/blame.h). A woken
 * thread has waited for the mutex if a release was charged with some of its time. A signal counts
 * only for sleepers that libc knows (cond_waiters()). A thread that is about to sleep hears no
 * signal. */
#ifndef LOCKTOP_WAKEUPS_H
#define LOCKTOP_WAKEUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "locktop/abi.h"

/* The thread is about to sleep. Returns the round of the sleep, for wakeup_end(). */
uint64_t wakeup_begin(struct lt_condition *condition);

/* A thread signals. At most `most` sleepers wake. */
void wakeup_signal(struct lt_condition *condition, uint32_t most);

/* The sleep is over. `heard`: the call says that a signal or a broadcast ended the sleep. Returns
 * when the thread was woken (ticks). 0: no thread of this process did so. */
uint64_t wakeup_end(struct lt_condition *condition, uint64_t round, bool heard);

/* The woken thread has the mutex, or gave up. Returns whether the thread waited for the mutex
 * since the moment `woken`. `alone`: the thread has the mutex now. */
bool wakeup_waited(const struct lt_condition *condition, uint64_t woken, uint64_t now, bool alone);

#endif
