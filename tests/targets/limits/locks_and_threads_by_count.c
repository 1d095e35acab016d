/* Many locks and many threads, as many as the arguments say: locks_and_threads_by_count WAY LOCKS
 * THREADS.
 *
 *   locks    each thread takes its share of all locks, three times over
 *   all      each thread takes every lock, three times over, one thread after the other
 *   threads  each thread takes so many locks of its own, then all threads wait for g_gate
 *   lives    so many threads, one after the other; each thread makes so many locks where the thread
 *            before had its own, takes them, and destroys them
 *   held     one thread takes all locks, then releases them, the first one first; THREADS is 1
 *
 * The program says the truth when all is done and nothing changes any more. "acquisitions"
 * counts those of mutexes in total. "first" and "last" are the CPU time of a lock and unlock in ns,
 * in the first and last pass. Ends at a line.
 */
#include <limits.h>
#include <stdatomic.h>

#include "../target.h"

enum { ROUNDS = 3, STACK = 64 << 10 };

pthread_mutex_t g_gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *locks; /* the number of all locks */
static unsigned long lock_count;
static int thread_count;

static struct worker {
    unsigned long first, count; /* of its locks */
    double seconds[ROUNDS];
} *workers;
static atomic_int done; /* threads that have done their part and now wait */
static int parked[2];   /* a pipe: a thread that reads it waits for no lock */

/* CPU time, so that other busy processes do not count. */
static double cpu_time_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static KEPT void take_all(struct worker *self)
{
    for (int round = 0; round < ROUNDS; round++) {
        double before = cpu_time_s();
        for (unsigned long i = 0; i < self->count; i++) {
            pthread_mutex_lock(&locks[self->first + i]);
            pthread_mutex_unlock(&locks[self->first + i]);
        }
        self->seconds[round] = cpu_time_s() - before;
    }
}

static void park(void)
{
    char c;
    while (read(parked[0], &c, 1) > 0)
        continue;
}

static void *takes(void *argument)
{
    take_all(argument);
    atomic_fetch_add(&done, 1);
    park();
    return NULL;
}

static KEPT void *waits(void *argument)
{
    take_all(argument);
    atomic_fetch_add(&done, 1);
    pthread_mutex_lock(&g_gate);
    pthread_mutex_unlock(&g_gate);
    return NULL;
}

static void *lives(void *argument)
{
    struct worker *self = argument;
    for (unsigned long i = 0; i < self->count; i++)
        pthread_mutex_init(&locks[i], NULL);
    take_all(self);
    for (unsigned long i = 0; i < self->count; i++)
        pthread_mutex_destroy(&locks[i]);
    return NULL;
}

static pthread_t start_small(void *(*run)(void *), struct worker *worker)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    must(pthread_attr_setstacksize(&attributes, STACK), "pthread_attr_setstacksize");
    must(pthread_create(&thread, &attributes, run, worker), "pthread_create");
    pthread_attr_destroy(&attributes);
    return thread;
}

static void until_done(int threads)
{
    while (atomic_load(&done) < threads)
        pause_ms(1);
}

static double ns(int round, unsigned long pairs)
{
    double seconds = 0;
    for (int i = 0; i < thread_count; i++)
        seconds += workers[i].seconds[round];
    return pairs ? seconds / (double)pairs * 1e9 : 0;
}

static void say_truth(unsigned long acquisitions)
{
    char text[200];
    unsigned long pairs = acquisitions / ROUNDS;
    snprintf(text, sizeof text, "{\"acquisitions\": %lu, \"first\": %.1f, \"last\": %.1f}",
             acquisitions, ns(0, pairs), ns(ROUNDS - 1, pairs));
    say(text);
}

static void make(unsigned long total, unsigned long each, unsigned long step)
{
    lock_count = total;
    locks = calloc(lock_count, sizeof *locks);
    workers = calloc((size_t)thread_count, sizeof *workers);
    must(!locks || !workers ? ENOMEM : 0, "calloc");
    for (int i = 0; i < thread_count; i++) {
        workers[i].first = (unsigned long)i * step;
        workers[i].count = each;
    }
}

/* Runs the threads all at once, or one after the other. */
static void run_all(void *(*run)(void *), int at_once)
{
    pthread_t *threads = calloc((size_t)thread_count, sizeof *threads);
    for (int i = 0; i < thread_count; i++) {
        threads[i] = start_small(run, &workers[i]);
        if (!at_once)
            until_done(i + 1);
    }
    until_done(thread_count);
    say_truth((unsigned long)thread_count * workers[0].count * ROUNDS);
    hear();
    close(parked[1]);
    pthread_mutex_unlock(&g_gate);
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
}

static void run_lives(void)
{
    for (int i = 0; i < thread_count; i++)
        pthread_join(start_small(lives, &workers[i]), NULL);
    say_truth((unsigned long)thread_count * workers[0].count * ROUNDS);
    hear();
}

static void run_held(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (unsigned long i = 0; i < lock_count; i++)
            pthread_mutex_lock(&locks[i]);
        double before = cpu_time_s();
        for (unsigned long i = 0; i < lock_count; i++)
            pthread_mutex_unlock(&locks[i]);
        workers[0].seconds[round] = cpu_time_s() - before;
    }
    say_truth(lock_count * ROUNDS);
    hear();
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const char *what = argv[1];
    unsigned long count = strtoul(argv[2], NULL, 10);
    thread_count = atoi(argv[3]);
    must(pipe(parked) ? errno : 0, "pipe");
    pthread_mutex_lock(&g_gate);
    if (!strcmp(what, "locks")) {
        make(count, count / (unsigned long)thread_count, count / (unsigned long)thread_count);
        run_all(takes, 1);
    } else if (!strcmp(what, "all")) {
        make(count, count, 0);
        run_all(takes, 0);
    } else if (!strcmp(what, "threads")) {
        make(count * (unsigned long)thread_count, count, count);
        run_all(waits, 1);
    } else if (!strcmp(what, "lives")) {
        make(count, count, 0);
        run_lives();
    } else if (!strcmp(what, "held")) {
        make(count, count, 0);
        run_held();
    } else {
        return 2;
    }
    return 0;
}
