/* Tries whether mutex_take() and this libc agree on mutexes. */
#include "interpose/fast_mutex.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/sys.h"
#include "interpose/checkers.h"

bool mutex_may_be_tried = true;

static const void *object_of(const void *function)
{
    Dl_info info;
    return dladdr(function, &info) ? info.dli_fbase : NULL;
}

/* Whether the function is libc's own, and not that of a profiler or another preload. */
static bool is_of_libc(const void *function)
{
    Dl_info info;
    if (!dladdr(function, &info) || !info.dli_fname)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *name = slash ? slash + 1 : info.dli_fname;
    return !strcmp(name, "libc.so.6") || !strcmp(name, "libpthread.so.0"); /* before glibc 2.34 */
}

static bool is_taken(const pthread_mutex_t *m, uint32_t tid)
{
    return m->__data.__lock == 1 && (uint32_t)m->__data.__owner == tid && m->__data.__nusers == 1;
}

static bool works_for(int kind)
{
    const pthread_mutex_t fresh = {.__data.__kind = kind};
    pthread_mutex_t theirs = fresh, ours = fresh;
    uint32_t tid = sys_gettid();

    if (real_pthread_mutex_lock(&theirs) != 0 || !is_taken(&theirs, tid) || !mutex_is_plain(kind))
        return false;
    if (!mutex_take(&ours, kind, tid) || memcmp(&ours, &theirs, sizeof ours) != 0)
        return false;
    bool recursive = (kind & MUTEX_TYPE) == PTHREAD_MUTEX_RECURSIVE_NP;
    if (mutex_take(&ours, kind, tid) ||
        real_pthread_mutex_trylock(&ours) != (recursive ? 0 : EBUSY) ||
        (recursive && real_pthread_mutex_unlock(&ours) != 0))
        return false;
    return real_pthread_mutex_unlock(&ours) == 0 && memcmp(&ours, &fresh, sizeof ours) == 0 &&
           mutex_take(&ours, kind, tid) && real_pthread_mutex_unlock(&ours) == 0;
}

bool fast_mutex_works(char *const *environ)
{
    mutex_may_be_tried = object_of((const void *)real_pthread_mutex_lock) ==
                         object_of((const void *)real_pthread_mutex_trylock);
    return is_of_libc((const void *)real_pthread_mutex_lock) &&
           is_of_libc((const void *)real_pthread_mutex_trylock) &&
           is_of_libc((const void *)real_pthread_mutex_unlock) && !is_under_valgrind(environ) &&
           works_for(PTHREAD_MUTEX_TIMED_NP) && works_for(PTHREAD_MUTEX_RECURSIVE_NP) &&
           works_for(PTHREAD_MUTEX_ERRORCHECK_NP) && works_for(PTHREAD_MUTEX_ADAPTIVE_NP) &&
           works_for(PTHREAD_MUTEX_TIMED_NP | MUTEX_PSHARED) &&
           works_for(PTHREAD_MUTEX_RECURSIVE_NP | MUTEX_PSHARED);
}

uint32_t mutex_read_tid(void)
{
    pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    real_pthread_mutex_lock(&mutex);
    uint32_t tid = (uint32_t)mutex.__data.__owner;
    real_pthread_mutex_unlock(&mutex);
    return tid;
}
