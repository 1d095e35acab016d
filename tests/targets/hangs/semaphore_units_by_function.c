/* Threads take units of a semaphore in several functions, and keep some. Then a thread waits.
 *
 * semaphore_units_by_function functions
 *   "twice" keeps two units of store_row(). "nester" keeps the unit of fetch_row(), and takes and
 *   posts another one in store_row() meanwhile. "leaver" keeps one of fetch_row() and ends. "tidy"
 *   posts what it takes. The program says the tid of "leaver".
 * semaphore_units_by_function plugin FIRST SECOND
 *   "keeper" keeps a unit that it took in plugin_take() of the library FIRST. "other" keeps one
 *   of fetch_row(). At a line the program unloads FIRST and loads SECOND. Says the address of the
 *   function each time.
 */
#include <dlfcn.h>
#include <semaphore.h>

#include "../target.h"

enum { ROUNDS = 20 };
static sem_t g_slots, g_never;
static int waiter, parked;
static void (*plugin_take)(sem_t *);

static KEPT void fetch_row(void)
{
    sem_wait(&g_slots);
}

static KEPT void store_row(void)
{
    sem_wait(&g_slots);
}

static KEPT void *park(void)
{
    __atomic_add_fetch(&parked, 1, __ATOMIC_RELEASE);
    sem_wait(&g_never);
    return NULL;
}

static void *tidy(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        (i % 2 ? fetch_row : store_row)();
        sem_post(&g_slots);
    }
    return park();
}

static void *take_twice(void *unused)
{
    (void)unused;
    store_row();
    store_row();
    return park();
}

static void *nest(void *unused)
{
    (void)unused;
    fetch_row();
    store_row();
    sem_post(&g_slots);
    return park();
}

static void *leave(void *tid)
{
    *(int *)tid = own_tid();
    fetch_row();
    return NULL;
}

static void *take_in_plugin(void *unused)
{
    (void)unused;
    plugin_take(&g_slots);
    return park();
}

static void *take_one(void *unused)
{
    (void)unused;
    fetch_row();
    return park();
}

static void *want(void *unused)
{
    __atomic_store_n(&waiter, own_tid(), __ATOMIC_RELEASE);
    fetch_row();
    return unused;
}

/* Starts a thread, which parks when it has taken its units. */
static void run(void *(*take)(void *), const char *name)
{
    int before = parked;
    start(take, NULL, name);
    while (__atomic_load_n(&parked, __ATOMIC_ACQUIRE) == before)
        pause_ms(1);
}

static pthread_t start_waiter(void)
{
    int tid;
    pthread_t thread = start(want, NULL, "waiter");
    while (!(tid = __atomic_load_n(&waiter, __ATOMIC_ACQUIRE)) || !is_asleep(tid))
        pause_ms(1);
    return thread;
}

static void run_functions(void)
{
    int leaver = 0;
    char said[30];
    sem_init(&g_slots, 0, 4);
    run(tidy, "tidy");
    must(pthread_join(start(leave, &leaver, "leaver"), NULL), "join");
    run(nest, "nester");
    run(take_twice, "twice");
    pthread_t thread = start_waiter();
    snprintf(said, sizeof said, "{\"leaver\": %d}", leaver);
    say(said);
    pthread_join(thread, NULL);
}

static void *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    must(library ? 0 : EINVAL, "dlopen");
    void (*(*function)(void))(sem_t *);
    *(void **)&function = dlsym(library, "plugin_take");
    plugin_take = function();
    return library;
}

static void say_take(void)
{
    char said[60];
    snprintf(said, sizeof said, "{\"take\": %llu}", (unsigned long long)(uintptr_t)plugin_take);
    say(said);
}

static void run_plugin(char **paths)
{
    sem_init(&g_slots, 0, 2);
    run(tidy, "tidy");
    void *library = load(paths[0]);
    run(take_in_plugin, "keeper");
    run(take_one, "other");
    pthread_t thread = start_waiter();
    say_take();
    hear();
    dlclose(library);
    load(paths[1]);
    say_take();
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    sem_init(&g_never, 0, 0);
    if (argc > 3 && strcmp(argv[1], "plugin") == 0)
        run_plugin(argv + 2);
    else
        run_functions();
}
