/* A lock that one thread holds for long while others wait, and that the others then pass on.
 *
 * stall_before_quick_turns long|equal|readers
 *   long: "compactor" says "held" when five "serve-" threads wait for its lock. "compactor"
 *   has the lock until the next line of the input. The others then have the lock for a moment.
 *   equal: each of the six threads has the lock for 60 ms while the others wait.
 *   readers: three "reader-" threads say "held" and read until the next line. The "writer" waits.
 * At the end the program says the name and id of each thread. With these are the times when the
 * thread requested, took and gave the lock.
 */
#include "../target.h"

enum { THREADS = 6, READERS = 3, EQUAL_MS = 60 };

pthread_mutex_t g_store = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t g_table = PTHREAD_RWLOCK_INITIALIZER;
static const char *mode;
static pthread_barrier_t all_hold;

static struct turn {
    char name[16];
    int tid;
    double requested, taken, given;
} turns[THREADS];

static int is(const char *name)
{
    return strcmp(mode, name) == 0;
}

static void await_wait(const struct turn *turn)
{
    while (!__atomic_load_n(&turn->tid, __ATOMIC_ACQUIRE) || !is_asleep(turn->tid))
        pause_ms(1);
}

static void request(struct turn *turn)
{
    turn->requested = now();
    __atomic_store_n(&turn->tid, own_tid(), __ATOMIC_RELEASE);
}

static void *serve(void *argument);

/* The threads come one after the other, so that the kernel wakes them in this order. */
static void start_others(pthread_t *threads, int first)
{
    for (int i = first; i < THREADS; i++) {
        threads[i] = start(serve, &turns[i], turns[i].name);
        await_wait(&turns[i]);
    }
}

static KEPT void compact(struct turn *turn, pthread_t *threads)
{
    request(turn);
    pthread_mutex_lock(&g_store);
    turn->taken = now();
    start_others(threads, 1);
    if (is("equal")) {
        pause_ms(EQUAL_MS);
    } else {
        say("held");
        hear();
    }
    turn->given = now();
    pthread_mutex_unlock(&g_store);
}

static KEPT void serve_one(struct turn *turn)
{
    request(turn);
    pthread_mutex_lock(&g_store);
    turn->taken = now();
    if (is("equal"))
        pause_ms(EQUAL_MS);
    turn->given = now();
    pthread_mutex_unlock(&g_store);
}

static void *serve(void *argument)
{
    serve_one(argument);
    return NULL;
}

static void *compactor(void *argument)
{
    compact(&turns[0], argument);
    return NULL;
}

static void *read_table(void *argument)
{
    struct turn *turn = argument;
    request(turn);
    pthread_rwlock_rdlock(&g_table);
    turn->taken = now();
    pthread_barrier_wait(&all_hold);
    pthread_barrier_wait(&all_hold); /* the line came */
    turn->given = now();
    pthread_rwlock_unlock(&g_table);
    return NULL;
}

static void *write_table(void *argument)
{
    struct turn *turn = argument;
    request(turn);
    pthread_rwlock_wrlock(&g_table);
    turn->taken = now();
    turn->given = now();
    pthread_rwlock_unlock(&g_table);
    return NULL;
}

static int read_and_write(pthread_t *threads)
{
    pthread_barrier_init(&all_hold, NULL, READERS + 1);
    for (int i = 0; i < READERS; i++) {
        snprintf(turns[i].name, sizeof turns[i].name, "reader-%d", i);
        threads[i] = start(read_table, &turns[i], turns[i].name);
    }
    pthread_barrier_wait(&all_hold);
    struct turn *writer = &turns[READERS];
    snprintf(writer->name, sizeof writer->name, "writer");
    threads[READERS] = start(write_table, writer, writer->name);
    await_wait(writer);
    say("held");
    hear();
    pthread_barrier_wait(&all_hold);
    return READERS + 1;
}

static int stall(pthread_t *threads)
{
    for (int i = 0; i < THREADS; i++)
        snprintf(turns[i].name, sizeof turns[i].name, i ? "serve-%d" : "compactor", i - 1);
    threads[0] = start(compactor, threads, turns[0].name);
    return THREADS;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    mode = argc > 1 ? argv[1] : "long";
    int count = is("readers") ? read_and_write(threads) : stall(threads);
    for (int i = 0; i < count; i++) /* the first thread starts the others before it ends */
        pthread_join(threads[i], NULL);
    printf("{\"turns\": [");
    for (int i = 0; i < count; i++)
        printf("%s[\"%s\", %d, %.9f, %.9f, %.9f]", i ? ", " : "", turns[i].name, turns[i].tid,
               turns[i].requested, turns[i].taken, turns[i].given);
    puts("]}");
    fflush(stdout);
    hear();
    return 0;
}
