/* A library to preload behind locktop's library, as a profiler or a checker might be. Counts the
 * calls that reach it and says the counts at the end.
 */
#include "../target.h"

#include <dlfcn.h>

static long taken, released;

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    int (*real)(pthread_mutex_t *) = (int (*)(pthread_mutex_t *))next("pthread_mutex_lock");
    int result = real(mutex);
    __atomic_fetch_add(&taken, result == 0, __ATOMIC_RELAXED);
    return result;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    int (*real)(pthread_mutex_t *) = (int (*)(pthread_mutex_t *))next("pthread_mutex_trylock");
    int result = real(mutex);
    __atomic_fetch_add(&taken, result == 0, __ATOMIC_RELAXED);
    return result;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int (*real)(pthread_mutex_t *) = (int (*)(pthread_mutex_t *))next("pthread_mutex_unlock");
    __atomic_fetch_add(&released, 1, __ATOMIC_RELAXED);
    return real(mutex);
}

__attribute__((destructor)) static void at_the_end(void)
{
    char text[100];
    snprintf(text, sizeof text, "{\"taken\": %ld, \"released\": %ld}", taken, released);
    say(text);
}
