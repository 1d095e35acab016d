/* locktop-demo: a small server in trouble, for locktop to show.
 *
 *   g_cache_lock    hot: two writers and two readers fight for one mutex
 *   g_config_lock   slow: a reload keeps every request out for a while
 *   g_queue_ready   idle: a pool that waits for work, which is not contention
 *   --deadlock      after a moment, three transfers lock three accounts in a ring
 *
 * Prints the line "ready" when every thread runs. Ends after --seconds N, or on SIGTERM or
 * SIGINT. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OWN_FRAME __attribute__((noinline)) /* a stack frame of its own */

enum { POOL = 4, REQUESTS = 3, WRITERS = 2, READERS = 2, ACCOUNTS = 3, ENTRIES = 4096 };

struct worker {
    char name[16];
    void *(*run)(void *);
    int number;
};

pthread_mutex_t g_cache_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t g_config_lock = PTHREAD_RWLOCK_INITIALIZER;
pthread_mutex_t g_queue_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t g_queue_ready = PTHREAD_COND_INITIALIZER;
pthread_mutex_t g_checking_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_savings_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_broker_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t *const accounts[ACCOUNTS] = {&g_checking_lock, &g_savings_lock,
                                                    &g_broker_lock};
static pthread_barrier_t everybody_runs;
static pthread_barrier_t each_has_one; /* each transfer has one account lock */
static uint32_t cache[ENTRIES];
static uint32_t config_version;
static unsigned queue_length;
static atomic_uint sink; /* keeps the work from being optimised away */

static void pause_ms(unsigned ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

/* The cache: its slow work is done while the lock is held. */

static OWN_FRAME void cache_rehash(void)
{
    for (uint32_t i = 0; i < ENTRIES; i++)
        cache[i] = cache[i] * 2654435761u + i;
    pause_ms(4); /* the cache writes itself to a slow disk */
}

static OWN_FRAME void cache_put(void)
{
    pthread_mutex_lock(&g_cache_lock);
    cache_rehash();
    pthread_mutex_unlock(&g_cache_lock);
}

static OWN_FRAME uint32_t cache_get(uint32_t key)
{
    pthread_mutex_lock(&g_cache_lock);
    uint32_t value = cache[key % ENTRIES];
    pthread_mutex_unlock(&g_cache_lock);
    return value;
}

static void *cache_writer(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&everybody_runs);
    for (;;) {
        cache_put();
        pause_ms(3);
    }
    return NULL;
}

static void *cache_reader(void *argument)
{
    const struct worker *self = argument;
    pthread_barrier_wait(&everybody_runs);
    for (uint32_t key = (uint32_t)self->number;; key++) {
        atomic_fetch_add(&sink, cache_get(key));
        pause_ms(1);
    }
    return NULL;
}

/* The configuration: one writer that takes its time, many readers. */

static OWN_FRAME void config_parse(void)
{
    config_version++;
    pause_ms(150);
}

static OWN_FRAME void config_reload(void)
{
    pthread_rwlock_wrlock(&g_config_lock);
    config_parse();
    pthread_rwlock_unlock(&g_config_lock);
}

static OWN_FRAME uint32_t config_read(void)
{
    pthread_rwlock_rdlock(&g_config_lock);
    uint32_t version = config_version;
    pthread_rwlock_unlock(&g_config_lock);
    return version;
}

static OWN_FRAME void request_handle(void)
{
    atomic_fetch_add(&sink, config_read());
    pause_ms(10);
}

static void *config_reloader(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&everybody_runs);
    for (;;) {
        config_reload();
        pause_ms(600);
    }
    return NULL;
}

static void *request_loop(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&everybody_runs);
    for (;;)
        request_handle();
    return NULL;
}

/* The pool: most of the time it has nothing to do, and that is no problem. */

static OWN_FRAME void queue_take(void)
{
    pthread_mutex_lock(&g_queue_lock);
    while (!queue_length)
        pthread_cond_wait(&g_queue_ready, &g_queue_lock);
    queue_length--;
    pthread_mutex_unlock(&g_queue_lock);
}

static OWN_FRAME void queue_put(void)
{
    pthread_mutex_lock(&g_queue_lock);
    queue_length++;
    pthread_cond_signal(&g_queue_ready);
    pthread_mutex_unlock(&g_queue_lock);
}

static void *pool_worker(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&everybody_runs);
    for (;;) {
        queue_take();
        pause_ms(5);
    }
    return NULL;
}

static void *listener(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&everybody_runs);
    for (;;) {
        pause_ms(400);
        queue_put();
    }
    return NULL;
}

/* The deadlock: each transfer has locked one account and wants the next one. */

static OWN_FRAME void account_credit(pthread_mutex_t *account)
{
    pthread_mutex_lock(account);
    pthread_mutex_unlock(account);
}

static OWN_FRAME void account_transfer(int from)
{
    pthread_mutex_lock(accounts[from]);
    pthread_barrier_wait(&each_has_one);
    account_credit(accounts[(from + 1) % ACCOUNTS]);
    pthread_mutex_unlock(accounts[from]);
}

static void *transfer_loop(void *argument)
{
    const struct worker *self = argument;
    pthread_barrier_wait(&everybody_runs);
    pause_ms(1500);
    account_transfer(self->number);
    return NULL;
}

/* The program. */

static struct worker workers[WRITERS + READERS + 1 + REQUESTS + POOL + 1 + ACCOUNTS];
static unsigned worker_count;

static void add_workers(const char *name, void *(*run)(void *), int count)
{
    for (int i = 0; i < count; i++) {
        struct worker *worker = &workers[worker_count++];
        if (count == 1)
            snprintf(worker->name, sizeof worker->name, "%.15s", name);
        else
            snprintf(worker->name, sizeof worker->name, "%.11s-%d", name, i % 100);
        worker->run = run;
        worker->number = i;
    }
}

static void start_workers(void)
{
    pthread_barrier_init(&everybody_runs, NULL, worker_count + 1);
    pthread_barrier_init(&each_has_one, NULL, ACCOUNTS);
    for (unsigned i = 0; i < worker_count; i++) {
        pthread_t thread;
        int error = pthread_create(&thread, NULL, workers[i].run, &workers[i]);
        if (error) {
            fprintf(stderr, "locktop-demo: cannot start a thread: %s\n", strerror(error));
            exit(1);
        }
        pthread_setname_np(thread, workers[i].name);
        pthread_detach(thread);
    }
    pthread_barrier_wait(&everybody_runs);
}

static void wait_for_the_end(const sigset_t *endings, long seconds)
{
    struct timespec time = {.tv_sec = seconds};
    if (seconds)
        sigtimedwait(endings, NULL, &time);
    else
        sigwaitinfo(endings, NULL);
}

static int usage(void)
{
    fputs("usage: locktop-demo [--deadlock] [--seconds N]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    long seconds = 0;
    int deadlock = 0;
    for (int i = 1; i < argc; i++) {
        char *end = "";
        if (!strcmp(argv[i], "--deadlock"))
            deadlock = 1;
        else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            seconds = strtol(argv[++i], &end, 10);
        else
            return usage();
        if (*end || seconds < 0)
            return usage();
    }
    sigset_t endings; /* waited for by the main thread alone */
    sigemptyset(&endings);
    sigaddset(&endings, SIGTERM);
    sigaddset(&endings, SIGINT);
    pthread_sigmask(SIG_BLOCK, &endings, NULL);

    add_workers("cache-put", cache_writer, WRITERS);
    add_workers("cache-get", cache_reader, READERS);
    add_workers("config-reload", config_reloader, 1);
    add_workers("request", request_loop, REQUESTS);
    add_workers("pool", pool_worker, POOL);
    add_workers("listener", listener, 1);
    if (deadlock)
        add_workers("transfer", transfer_loop, ACCOUNTS);
    start_workers();
    puts("ready");
    fflush(stdout);
    wait_for_the_end(&endings, seconds);
    return 0;
}
