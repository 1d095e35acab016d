/* Defines functions under names that the library defines too, as wrappers and sanitizers do. The
 * functions count, and call the next function of that name.
 */
#include <dlfcn.h>

#include "../target.h"

enum { ROUNDS = 1000 };

static int (*next_lock)(pthread_mutex_t *), (*next_unlock)(pthread_mutex_t *);
static int locked, unlocked;

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    locked++;
    return next_lock(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    unlocked++;
    return next_unlock(mutex);
}

pthread_mutex_t g_own = PTHREAD_MUTEX_INITIALIZER;

int main(void)
{
    *(void **)&next_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    *(void **)&next_unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    locked = unlocked = 0;
    for (int i = 0; i < ROUNDS; i++) {
        check_equal("lock", pthread_mutex_lock(&g_own), 0);
        check_equal("taken", pthread_mutex_trylock(&g_own), EBUSY);
        check_equal("unlock", pthread_mutex_unlock(&g_own), 0);
    }
    check_equal("locked by us alone", locked, ROUNDS);
    check_equal("unlocked by us alone", unlocked, ROUNDS);
    say("done");
    hear();
    return verdict();
}
