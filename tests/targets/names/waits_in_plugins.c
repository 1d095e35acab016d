/* `waits_in_plugins FIRST SECOND`: a thread waits for a mutex of a library, in a function of that
 * library. At a line the wait ends, and the program unloads the library. The next library of the
 * arguments takes its place. Says {"work": address of the function, "lock": address} at each wait.
 */
#include <dlfcn.h>

#include "../target.h"

static int waiter;

static void *call(void *work)
{
    __atomic_store_n(&waiter, own_tid(), __ATOMIC_RELEASE);
    ((void (*)(void))(uintptr_t)work)();
    return NULL;
}

static void *result(void *library, const char *name)
{
    void *(*function)(void);

    *(void **)&function = dlsym(library, name);
    return function();
}

static void wait_in(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    char said[100], line[16];
    int tid;

    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    must(library ? 0 : EINVAL, "dlopen");
    void *work = result(library, "plugin_work");
    pthread_mutex_t *lock = result(library, "plugin_lock");
    pthread_mutex_lock(lock);
    __atomic_store_n(&waiter, 0, __ATOMIC_RELEASE);
    pthread_t thread = start(call, work, "worker");
    while (!(tid = __atomic_load_n(&waiter, __ATOMIC_ACQUIRE)) || !is_asleep(tid))
        pause_ms(1);
    snprintf(said, sizeof said, "{\"work\": %llu, \"lock\": %llu}",
             (unsigned long long)(uintptr_t)work, (unsigned long long)(uintptr_t)lock);
    say(said);
    if (!fgets(line, sizeof line, stdin))
        exit(0);
    pthread_mutex_unlock(lock);
    must(pthread_join(thread, NULL), "join");
    dlclose(library);
}

int main(int count, char **words)
{
    for (int i = 1; i < count; i++)
        wait_in(words[i]);
    return 0;
}
