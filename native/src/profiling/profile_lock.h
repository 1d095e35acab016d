/* The lock of profiles. Short work alone is done under the lock, and no call of the program's. */
#ifndef LOCKTOP_PROFILE_LOCK_H
#define LOCKTOP_PROFILE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* Takes the lock, and writes the signals that the thread blocked before to `blocked`, as a mask of
 * bits. False: the thread has the lock already. */
bool profile_lock_take(uint64_t *blocked);
void profile_lock_give(const uint64_t *blocked);

/* Waits a moment for another thread. A sleep, for a thread of a real-time priority that only yields
 * would keep that other thread from its CPU. */
void profile_lock_pause(void);

/* Frees the lock in a forked child, whatever thread had it in the parent. */
void profile_lock_reset(void);

#pragma GCC visibility pop

#endif
