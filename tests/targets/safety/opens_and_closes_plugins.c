/* Opens and closes libraries whose code locks and waits: `opens_and_closes_plugins HOW FIRST
 * SECOND`.
 *
 *   reload   a thread waits in FIRST, which is closed; then in SECOND, which the loader puts where
 *            FIRST was; says how often in each: {"first": 3, "second": 5}
 *   waiting  the constructor of FIRST waits for a lock, whose holder takes its first
 *            locks meanwhile
 *   churn    threads fight in libraries that come and go
 */
#include <dlfcn.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "../target.h"

enum { IN_FIRST = 3, IN_SECOND = 5, THREADS = 3, TIMES = 30, ROUNDS = 50 };

typedef void (*entry)(pthread_mutex_t *);

pthread_mutex_t g_in_plugin = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_wanted_by_constructor = PTHREAD_MUTEX_INITIALIZER;
static entry works;
static sem_t called, done;
static atomic_int tid;

static void *open_plugin(const char *path)
{
    void *plugin = dlopen(path, RTLD_NOW);
    if (!plugin)
        fprintf(stderr, "%s\n", dlerror());
    must(plugin ? 0 : EINVAL, "dlopen");
    works = *(entry *)dlsym(plugin, "plugin_entry");
    return plugin;
}

/* Each time with the same stack, except for the plugin. */
static void *caller(void *argument)
{
    tid = own_tid();
    for (int i = 0; i < IN_FIRST + IN_SECOND; i++) {
        sem_wait(&called);
        works(&g_in_plugin);
        sem_post(&done);
    }
    return argument;
}

static void *wait_in(const char *path, int times, entry *was_at)
{
    void *plugin = open_plugin(path);
    if (*was_at)
        check_equal("put in the same place", works == *was_at, 1);
    *was_at = works;
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(&g_in_plugin);
        sem_post(&called);
        while (__atomic_load_n(&g_in_plugin.__data.__lock, __ATOMIC_ACQUIRE) != 2)
            sched_yield(); /* until a thread sleeps on the lock */
        pthread_mutex_unlock(&g_in_plugin);
        sem_wait(&done);
    }
    return plugin;
}

static void reload(const char *first, const char *second)
{
    entry was_at = NULL;
    char text[100];
    pthread_t thread = start(caller, NULL, NULL);
    void *plugin = wait_in(first, IN_FIRST, &was_at);
    check_equal("dlclose", dlclose(plugin), 0);
    wait_in(second, IN_SECOND, &was_at);
    pthread_join(thread, NULL);
    snprintf(text, sizeof text, "{\"first\": %d, \"second\": %d}", IN_FIRST, IN_SECOND);
    say(text);
}

static void *opens(void *path)
{
    sem_post(&called);
    open_plugin(path);
    return NULL;
}

static void *takes_its_first(void *argument)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    struct timespec past = {0, 0};
    pthread_mutex_lock(&fresh);
    check_equal("timedwait", pthread_cond_timedwait(&cond, &fresh, &past), ETIMEDOUT);
    pthread_mutex_unlock(&fresh);
    pthread_mutex_lock(&g_in_plugin);
    pthread_mutex_unlock(&g_in_plugin);
    return argument;
}

/* While the loader's lock is held: the thread that opens the library waits for
 * g_wanted_by_constructor. */
static void constructor_waits(char *path)
{
    pthread_mutex_lock(&g_wanted_by_constructor);
    pthread_t opening = start(opens, path, NULL);
    sem_wait(&called);
    while (__atomic_load_n(&g_wanted_by_constructor.__data.__lock, __ATOMIC_ACQUIRE) != 2)
        sched_yield();
    pthread_mutex_lock(&g_in_plugin);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(takes_its_first, NULL, NULL);
    while (__atomic_load_n(&g_in_plugin.__data.__lock, __ATOMIC_ACQUIRE) != 2)
        sched_yield(); /* one waits, and its stack is captured */
    pthread_mutex_unlock(&g_in_plugin);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_unlock(&g_wanted_by_constructor);
    pthread_join(opening, NULL);
}

static void *fights(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        works(&g_in_plugin);
        pthread_mutex_lock(&g_in_plugin);
        sched_yield();
        pthread_mutex_unlock(&g_in_plugin);
    }
    return argument;
}

static void churn(char **paths)
{
    for (int time = 0; time < TIMES; time++) {
        pthread_t threads[THREADS];
        void *plugin = open_plugin(paths[time % 2]);
        for (int i = 0; i < THREADS; i++)
            threads[i] = start(fights, NULL, NULL);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        check_equal("dlclose", dlclose(plugin), 0);
    }
}

int main(int argc, char **argv)
{
    sem_init(&called, 0, 0);
    sem_init(&done, 0, 0);
    must(argc > 3 ? 0 : EINVAL, "arguments");
    if (!strcmp(argv[1], "reload"))
        reload(argv[2], argv[3]);
    else if (!strcmp(argv[1], "waiting"))
        constructor_waits(argv[2]);
    else
        churn(argv + 2);
    return verdict_and_stay();
}
