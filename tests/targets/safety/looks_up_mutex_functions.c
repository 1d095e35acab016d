/* Finds the mutex functions by name, in every way that a program can. Locks and unlocks one mutex
 * through each pair of functions.
 */
#include <dlfcn.h>

#include "../target.h"

typedef int (*mutex_function)(pthread_mutex_t *);
enum { WAYS = 6 };

pthread_mutex_t g_found = PTHREAD_MUTEX_INITIALIZER;

static void find(const char *name, mutex_function linked, mutex_function found[WAYS])
{
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    void *itself = dlopen(NULL, RTLD_NOW);
    void *symbols[WAYS] = {
        (void *)linked,
        dlsym(RTLD_DEFAULT, name),
        dlsym(RTLD_NEXT, name),
        dlsym(itself, name),
        dlsym(libc, name),
#if defined(__x86_64__)
        dlvsym(RTLD_DEFAULT, name, "GLIBC_2.2.5"),
#else
        dlvsym(RTLD_DEFAULT, name, "GLIBC_2.17"),
#endif
    };
    for (int i = 0; i < WAYS; i++) {
        if (!symbols[i])
            check_equal(name, i, -1);
        memcpy(&found[i], &symbols[i], sizeof found[i]);
    }
}

int main(void)
{
    mutex_function lock[WAYS], trylock[WAYS], unlock[WAYS];
    find("pthread_mutex_lock", pthread_mutex_lock, lock);
    find("pthread_mutex_trylock", pthread_mutex_trylock, trylock);
    find("pthread_mutex_unlock", pthread_mutex_unlock, unlock);
    if (failures)
        return verdict();
    for (int taken = 0; taken < WAYS; taken++)
        for (int back = 0; back < WAYS; back++) {
            check_equal("lock", lock[taken](&g_found), 0);
            check_equal("a taken one", trylock[back](&g_found), EBUSY);
            check_equal("unlock", unlock[back](&g_found), 0);
            check_equal("a free one", trylock[taken](&g_found), 0);
            check_equal("unlock", unlock[back](&g_found), 0);
        }
    say("done");
    hear();
    return verdict();
}
