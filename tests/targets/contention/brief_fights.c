/* Threads fight for locks that they hold for a moment, one kind of lock after the other. Says how
 * often the threads took each lock. The library counts_failed_tries beside the program counts the
 * acquisitions that did not succeed at once.
 */
#include <dlfcn.h>

#include "../target.h"

enum { THREADS = 4, ROUNDS = 20000, ENOUGH = 1000, STEPS = 5, APART = 25 };

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t g_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t g_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t g_spin;
static pthread_barrier_t begin;
static volatile uint64_t taken[4];

static void work(int steps)
{
    for (volatile int i = 0; i < steps; i++)
        ;
}

/* NULL without the library beside the program. */
static const volatile unsigned long *counted_rwlock, *counted_spin;

static int enough(const volatile unsigned long *counted)
{
    return !counted || *counted >= ENOUGH;
}

/* On a busy machine the threads may hardly meet. */
#define FIGHT(kind, counted, take, give)                                                           \
    pthread_barrier_wait(&begin);                                                                  \
    for (int i = 0; i < ROUNDS || !enough(counted); i++) {                                         \
        take;                                                                                      \
        taken[kind]++;                                                                             \
        work(STEPS);                                                                               \
        give;                                                                                      \
        work(APART);                                                                               \
    }

static void *fight(void *argument)
{
    FIGHT(0, NULL, pthread_mutex_lock(&g_mutex), pthread_mutex_unlock(&g_mutex))
    FIGHT(1, NULL, pthread_mutex_lock(&g_recursive), pthread_mutex_unlock(&g_recursive))
    FIGHT(2, counted_rwlock, pthread_rwlock_wrlock(&g_rwlock), pthread_rwlock_unlock(&g_rwlock))
    FIGHT(3, counted_spin, pthread_spin_lock(&g_spin), pthread_spin_unlock(&g_spin))
    pthread_barrier_wait(&begin);
    pthread_barrier_wait(&begin);
    return argument;
}

int main(void)
{
    pthread_t threads[THREADS];
    char text[200];
    counted_rwlock = dlsym(RTLD_DEFAULT, "counted_rwlock");
    counted_spin = dlsym(RTLD_DEFAULT, "counted_spin");
    must(pthread_barrier_init(&begin, NULL, THREADS + 1), "pthread_barrier_init");
    must(pthread_spin_init(&g_spin, PTHREAD_PROCESS_PRIVATE), "pthread_spin_init");
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(fight, NULL, "fighter");
    for (int kind = 0; kind < 5; kind++)
        pthread_barrier_wait(&begin);
    snprintf(text, sizeof text, "{\"taken\": [%lu, %lu, %lu, %lu], \"contended\": [%lu, %lu]}",
             (unsigned long)taken[0], (unsigned long)taken[1], (unsigned long)taken[2],
             (unsigned long)taken[3], counted_rwlock ? *counted_rwlock : 0,
             counted_spin ? *counted_spin : 0);
    say(text);
    hear();
    pthread_barrier_wait(&begin);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    say("joined");
    hear();
    return 0;
}
