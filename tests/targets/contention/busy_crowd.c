/* A busy crowd: as many threads as the first argument says take random locks of 42, at two call
 * sites. Each thread waits 10 to 30 times a second, or less if the threads are more than 5,000.
 * A thread sleeps while it holds a lock, so the program needs little of a processor.
 *
 * Says "ready" when each thread has taken as many locks as there are. At a line all threads stop
 * with no lock held, and the program says how often they took a lock.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "../target.h"

enum { LOCKS = 42, CYCLE_US = 45000, LEAST_HOLD_US = 400 };

static pthread_mutex_t locks[LOCKS];
static unsigned hold_us;
static atomic_uint warm, asleep;
static atomic_bool stop;
static atomic_ulong turns;

static KEPT void hold(void)
{
    struct timespec time = {.tv_nsec = (long)hold_us * 1000};
    nanosleep(&time, NULL);
}

static KEPT void read_entry(pthread_mutex_t *lock)
{
    must(pthread_mutex_lock(lock), "lock");
    hold();
    must(pthread_mutex_unlock(lock), "unlock");
}

static KEPT void write_entry(pthread_mutex_t *lock)
{
    must(pthread_mutex_lock(lock), "lock");
    hold();
    must(pthread_mutex_unlock(lock), "unlock");
}

static void *take_locks(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument * 7919 + 1, own_turns = 0;
    while (!atomic_load(&stop)) {
        seed = seed * 1103515245 + 12345;
        pthread_mutex_t *lock = &locks[(seed >> 16) % LOCKS];
        if ((seed >> 8) % 2)
            read_entry(lock);
        else
            write_entry(lock);
        if (++own_turns == LOCKS)
            atomic_fetch_add(&warm, 1);
    }
    atomic_fetch_add(&turns, own_turns);
    atomic_fetch_add(&asleep, 1);
    for (;;)
        pause();
    return NULL;
}

static void until_all(atomic_uint *count, unsigned threads)
{
    while (atomic_load(count) < threads)
        pause_ms(1);
}

int main(int argc, char **argv)
{
    unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 300;
    pthread_t thread;
    pthread_attr_t small;
    hold_us = threads ? CYCLE_US * LOCKS / threads : 0;
    if (hold_us < LEAST_HOLD_US)
        hold_us = LEAST_HOLD_US;
    for (int i = 0; i < LOCKS; i++)
        must(pthread_mutex_init(&locks[i], NULL), "pthread_mutex_init");
    must(pthread_attr_init(&small), "pthread_attr_init");
    must(pthread_attr_setstacksize(&small, 1 << 17), "pthread_attr_setstacksize");
    for (uintptr_t i = 0; i < threads; i++)
        must(pthread_create(&thread, &small, take_locks, (void *)i), "pthread_create");
    until_all(&warm, threads);
    say("ready");
    hear();
    atomic_store(&stop, true);
    until_all(&asleep, threads);
    char text[100];
    snprintf(text, sizeof text, "{\"turns\": %lu}", atomic_load(&turns));
    say(text);
    hear();
    return 0;
}
