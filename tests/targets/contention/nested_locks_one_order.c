/* Four threads fight for three nested locks, always in the same order: much contention, never a
 * deadlock. Says "ready" when each thread has completed one round. Runs until the end of stdin.
 */
#include <stdatomic.h>

#include "../target.h"

enum { THREADS = 4 };

pthread_mutex_t g_outer_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_middle_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t g_inner_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t been_through;
static volatile unsigned shared;

static KEPT void work(unsigned turns)
{
    for (unsigned i = 0; i < turns; i++)
        shared++;
}

static KEPT void inner(unsigned number)
{
    if (number % 2)
        pthread_rwlock_wrlock(&g_inner_lock);
    else
        pthread_rwlock_rdlock(&g_inner_lock);
    work(500);
    pthread_rwlock_unlock(&g_inner_lock);
}

static KEPT void middle(unsigned number)
{
    pthread_mutex_lock(&g_middle_lock);
    work(500);
    inner(number);
    pthread_mutex_unlock(&g_middle_lock);
}

/* Half of the threads begin in the middle, so that the inner locks are contended too. */
static KEPT void once_through(unsigned number)
{
    if (number / 2) {
        middle(number);
        return;
    }
    pthread_mutex_lock(&g_outer_lock);
    middle(number);
    pthread_mutex_unlock(&g_outer_lock);
}

static void *loop(void *argument)
{
    unsigned number = (unsigned)(uintptr_t)argument;
    once_through(number);
    pthread_barrier_wait(&been_through);
    for (;;)
        once_through(number);
    return NULL;
}

int main(void)
{
    pthread_barrier_init(&been_through, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        start(loop, (void *)i, NULL);
    pthread_barrier_wait(&been_through);
    say("ready");
    hear();
    return 0;
}
