/* Threads that stay and threads that end post semaphores, and signal and broadcast conditions. For
 * most of these no thread waits. Each line on stdin starts another round; after the round the
 * program says the truth so far.
 */
#include <limits.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <threads.h>

#include "../target.h"

enum { THREADS = 3, TIMES = 2000, MANY = 300, REFUSED = 5 };

sem_t g_posted, g_full, g_unposted, g_many[MANY];
pthread_cond_t g_signalled = PTHREAD_COND_INITIALIZER;
pthread_cond_t g_unsignalled = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begins, ends;
cnd_t g_cnd;
static atomic_long posted, signalled, of_cnd, full;
static atomic_int waiting;

/* Several ways in turn, each with a number of its own. */
static void wake(int times)
{
    for (int i = 0; i < times; i++) {
        check_equal("post", sem_post(&g_posted), 0);
        check_equal("signal", pthread_cond_signal(&g_signalled), 0);
        if (i % 2)
            check_equal("broadcast", pthread_cond_broadcast(&g_signalled), 0);
        check_equal("signal", cnd_signal(&g_cnd), thrd_success);
        if (i % 4 == 0)
            check_equal("broadcast", cnd_broadcast(&g_cnd), thrd_success);
    }
    posted += times;
    signalled += times + times / 2;
    of_cnd += times + times / 4;
}

static void *comes_and_goes(void *argument)
{
    wake(TIMES * (1 + *(int *)argument));
    return NULL;
}

/* The thread waits for none of these, and uses no other lock. */
static void *stays(void *argument)
{
    for (;;) {
        pthread_barrier_wait(&begins);
        wake(TIMES);
        for (int i = 0; i < MANY; i++)
            for (int n = 0; n <= i % 3; n++)
                check_equal("post", sem_post(&g_many[i]), 0);
        pthread_barrier_wait(&ends);
    }
    return argument;
}

static void *waits_for_a_signal(void *argument)
{
    pthread_mutex_lock(&mutex);
    waiting++;
    for (;;)
        pthread_cond_wait(&g_unsignalled, &mutex);
    return argument;
}

static void *waits_for_a_post(void *argument)
{
    waiting++;
    while (sem_wait(&g_unposted) != 0)
        continue;
    return argument;
}

/* A refused call is no post, and returns the usual error. */
static void fill(void)
{
    int value;
    sem_getvalue(&g_full, &value);
    full += SEM_VALUE_MAX - value;
    while (value++ < SEM_VALUE_MAX)
        check_equal("the last post", sem_post(&g_full), 0);
    for (int i = 0; i < REFUSED; i++) {
        errno = 0;
        check_equal("one post too many", sem_post(&g_full), -1);
        check_equal("errno", errno, EOVERFLOW);
    }
}

static void round_of_all(void)
{
    static int numbers[THREADS] = {0, 1, 2};
    pthread_t threads[THREADS];
    pthread_barrier_wait(&begins);
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(comes_and_goes, &numbers[i], NULL);
    wake(TIMES / 2);
    fill();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_wait(&ends);
}

int main(void)
{
    pthread_barrier_init(&begins, NULL, 2);
    pthread_barrier_init(&ends, NULL, 2);
    sem_init(&g_posted, 0, 0);
    sem_init(&g_unposted, 0, 0);
    sem_init(&g_full, 0, SEM_VALUE_MAX - 3);
    for (int i = 0; i < MANY; i++)
        sem_init(&g_many[i], 0, 0);
    check_equal("init", cnd_init(&g_cnd), thrd_success);
    start(stays, NULL, "stays");
    start(waits_for_a_signal, NULL, "unsignalled");
    start(waits_for_a_signal, NULL, "unsignalled");
    start(waits_for_a_post, NULL, "unposted");
    while (waiting < 3)
        pause_ms(1);
    say("ready");
    for (;;) {
        hear();
        round_of_all();
        char text[300];
        snprintf(text, sizeof text,
                 "{\"posted\": %ld, \"signalled\": %ld, \"of_cnd\": %ld, \"full\": %ld, "
                 "\"many\": %d, \"many_at\": %lu, \"many_size\": %zu, \"failures\": %d}",
                 posted, signalled, of_cnd, full, MANY, (unsigned long)(uintptr_t)g_many,
                 sizeof *g_many, failures);
        say(text);
    }
}
