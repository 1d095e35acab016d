/* Runs a known mix of acquisitions. */
#include "mix.h"

#include <unistd.h>

#include "measure.h"
#include "waiters.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* the last cycle in which the second thread is to take the mutex, and has taken it */
static atomic_uint wanted, had;

static void wait_until(atomic_uint *reached, unsigned cycle)
{
    while (atomic_load(reached) != cycle)
        wait_a_little();
}

static void *second(void *argument)
{
    unsigned cycles = *(unsigned *)argument;
    for (unsigned cycle = 1; cycle <= cycles; cycle++) {
        wait_until(&wanted, cycle);
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        atomic_store(&had, cycle);
    }
    pause(); /* until the process ends */
    return NULL;
}

void run_mix(unsigned share, unsigned cycles)
{
    start_thread(second, &cycles);
    for (unsigned cycle = 1; cycle <= cycles; cycle++) {
        for (unsigned i = 0; i < share - 2; i++) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
        }
        pthread_mutex_lock(&mutex);
        atomic_store(&wanted, cycle);
        while (!somebody_waits_for(&mutex))
            wait_a_little();
        pthread_mutex_unlock(&mutex);
        wait_until(&had, cycle);
    }
}
