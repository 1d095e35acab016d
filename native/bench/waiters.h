/* Waits for another thread without a lock, and finds out that a thread waits for a mutex. */
#ifndef BENCH_WAITERS_H
#define BENCH_WAITERS_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

/* The word of a plain mutex is 2 from when a thread has found the mutex taken (glibc,
 * lowlevellock.h). */
static inline bool somebody_waits_for(const pthread_mutex_t *mutex)
{
    return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_ACQUIRE) == 2;
}

/* For a loop that takes a moment. */
static inline void pause_a_little(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

/* For a loop that another thread ends: that thread may need this very CPU. */
static inline void wait_a_little(void)
{
    enum { PAUSES = 2000 };
    static __thread unsigned pauses;
    if (++pauses % PAUSES)
        pause_a_little();
    else
        sched_yield();
}

#endif
