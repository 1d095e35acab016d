/* A crowd that waits for a connection of a pool. All holders of a connection wait for the index
 * lock, whose holder reads a pipe. The argument is the pool: "semaphore" of eight units, or eight
 * "mutexes". With "alone" the crowd waits for the index lock itself, and with "work" for work that
 * never comes. Says the tid of the holder and its system call as JSON when all threads wait.
 */
#include <semaphore.h>

#include "../target.h"

enum { UNITS = 8, THREADS = 299 };

pthread_mutex_t g_index_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_connections[UNITS];
sem_t g_pool, g_work;
static sem_t index_is_held;
static int pipe_ends[2], tids[THREADS], loader_tid;
static const char *pool;

static KEPT int is_pool(const char *kind)
{
    return strcmp(pool, kind) == 0;
}

static KEPT void take_connection(int number)
{
    if (is_pool("semaphore"))
        while (sem_wait(&g_pool))
            continue;
    else
        pthread_mutex_lock(&g_connections[number % UNITS]);
}

static KEPT void give_connection(int number)
{
    if (is_pool("semaphore"))
        sem_post(&g_pool);
    else
        pthread_mutex_unlock(&g_connections[number % UNITS]);
}

static KEPT void load_index(void)
{
    char c;
    pthread_mutex_lock(&g_index_lock);
    sem_post(&index_is_held);
    while (read(pipe_ends[0], &c, 1) < 0)
        continue;
    pthread_mutex_unlock(&g_index_lock);
}

static void *loader(void *unused)
{
    loader_tid = own_tid();
    load_index();
    return unused;
}

static KEPT void find_in_index(void)
{
    pthread_mutex_lock(&g_index_lock);
    pthread_mutex_unlock(&g_index_lock);
}

static void *user(void *argument)
{
    int number = (int)(intptr_t)argument;
    take_connection(number);
    tids[number] = own_tid();
    find_in_index();
    give_connection(number);
    return NULL;
}

static void *worker(void *argument)
{
    int number = (int)(intptr_t)argument;
    tids[number] = own_tid();
    if (is_pool("alone")) {
        find_in_index();
        return NULL;
    }
    if (is_pool("work")) {
        while (sem_wait(&g_work))
            continue;
        return NULL;
    }
    take_connection(number);
    give_connection(number);
    return NULL;
}

static KEPT void await(int from, int until)
{
    for (int i = from; i < until; i++)
        while (!__atomic_load_n(&tids[i], __ATOMIC_ACQUIRE) || !is_asleep(tids[i]))
            pause_ms(1);
}

int main(int argc, char **argv)
{
    static pthread_t threads[THREADS];
    char name[16];
    pool = argc > 1 ? argv[1] : "semaphore";
    must(pipe(pipe_ends), "pipe");
    sem_init(&g_pool, 0, UNITS);
    sem_init(&g_work, 0, 0);
    sem_init(&index_is_held, 0, 0);
    for (int i = 0; i < UNITS; i++)
        pthread_mutex_init(&g_connections[i], NULL);
    for (int i = 0; i < UNITS; i++) {
        take_connection(i);
        give_connection(i);
    }
    pthread_t holder = start(loader, NULL, "loader");
    sem_wait(&index_is_held);
    for (int i = 0; i < THREADS; i++) {
        if (i == UNITS)
            await(0, UNITS);
        snprintf(name, sizeof name, i < UNITS ? "user-%d" : "worker-%d", i);
        threads[i] = start(i < UNITS ? user : worker, (void *)(intptr_t)i, name);
    }
    await(0, THREADS);
    printf("{\"holder\": %d, \"call\": \"read(%d -> \"}\n", loader_tid, pipe_ends[0]);
    fflush(stdout);
    hear();
    must(write(pipe_ends[1], "x", 1) != 1, "write");
    pthread_join(holder, NULL);
    for (int i = 0; i < THREADS; i++) {
        if (is_pool("work"))
            sem_post(&g_work);
        pthread_join(threads[i], NULL);
    }
    say("over");
    hear();
    return 0;
}
