/* A library whose dlsym() works as that of glibc before 2.34: it calls pthread_once(), and locks.
 * The test preloads this library behind ours, so that its calls reach the hooks. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

typedef void *lookup(void *, const char *);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static lookup *real;

static void find(void)
{
    real = (lookup *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!real)
        abort();
}

void *dlsym(void *handle, const char *name)
{
    pthread_once(&once, find);
    if (pthread_mutex_lock(&mutex)) /* std::mutex would throw */
        abort();
    void *found = real(handle, name);
    if (pthread_mutex_unlock(&mutex))
        abort();
    return found;
}
