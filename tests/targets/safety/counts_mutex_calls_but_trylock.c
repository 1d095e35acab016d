/* A library to preload behind locktop's library: as counts_mutex_calls.c, but without a trylock. */
#include "../target.h"

#include <dlfcn.h>

static long taken, released;

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    int (*real)(pthread_mutex_t *) =
        (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    return real(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int (*real)(pthread_mutex_t *) =
        (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    __atomic_fetch_add(&released, 1, __ATOMIC_RELAXED);
    return real(mutex);
}

__attribute__((destructor)) static void at_the_end(void)
{
    char text[100];
    snprintf(text, sizeof text, "{\"taken\": %ld, \"released\": %ld}", taken, released);
    say(text);
}
