/* The lock of profiles: a word, and no signal handler while a thread has the lock. */
#include "profiling/profile_lock.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/compiler.h"
#include "base/sys.h"
#include "shm/segment.h"

enum { PAUSE_NS = 20000 };

/* While a thread has the lock, no signal handler runs in the thread. So a handler may use profiles,
 * and the program cannot delay a thread that has the lock. A program that confined itself may be
 * killed by a system call, so then the lock makes none. */
static uint64_t owner; /* pthread_self(), 0: free */

void profile_lock_pause(void)
{
    struct timespec span = {0, PAUSE_NS};
    if (shm_is_sealed())
        cpu_relax();
    else
        sys_call3(SYS_nanosleep, (long)&span, 0, 0);
}

static void mask_restore(const uint64_t *blocked)
{
    if (*blocked != UINT64_MAX) /* the kernel never returns this mask: SIGKILL is not in it */
        sys_restore_signals(*blocked);
}

bool profile_lock_take(uint64_t *blocked)
{
    uint64_t self = (uint64_t)pthread_self(), expected = 0;
    *blocked = shm_is_sealed() ? UINT64_MAX : sys_block_signals();
    while (!__atomic_compare_exchange_n(&owner, &expected, self, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
        if (expected == self) { /* in a handler of a signal that interrupted this thread in here */
            mask_restore(blocked);
            return false;
        }
        expected = 0;
        profile_lock_pause();
    }
    return true;
}

void profile_lock_give(const uint64_t *blocked)
{
    __atomic_store_n(&owner, 0, __ATOMIC_RELEASE);
    mask_restore(blocked);
}

void profile_lock_reset(void)
{
    owner = 0;
}
