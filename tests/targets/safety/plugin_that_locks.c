/* A library that opens_and_closes_plugins.c opens and closes. With -DWORKS=NAME the function in its
 * stacks has that name. With -DWAITS its constructor waits for a lock of the program.
 */
#include <pthread.h>
#include <stddef.h>

#ifndef WORKS
#define WORKS plugin_works
#endif

void WORKS(pthread_mutex_t *lock);
extern pthread_mutex_t g_wanted_by_constructor __attribute__((weak));

static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;

__attribute__((noinline)) void WORKS(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
    pthread_mutex_unlock(lock);
}

/* The function that the program looks up. */
void (*plugin_entry)(pthread_mutex_t *) = WORKS;

__attribute__((constructor)) static void opened(void)
{
    pthread_key_create(&key, NULL);
#ifdef WAITS
    pthread_mutex_lock(&g_wanted_by_constructor);
    pthread_mutex_unlock(&g_wanted_by_constructor);
#endif
    pthread_mutex_t passing = PTHREAD_MUTEX_INITIALIZER;
    WORKS(&passing);
}

__attribute__((destructor)) static void closed(void)
{
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
    pthread_mutex_destroy(&own);
    pthread_key_delete(key);
}
