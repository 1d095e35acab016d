/* A timer of its own interrupts each thread. The thread fights with the others for known and new
 * locks, and posts and takes a semaphore. The handler posts semaphores, which POSIX permits in any
 * handler: the thread's semaphore, and new ones. Every post must arrive, and every errno must stay.
 * With an argument the program first says what it did.
 */
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "../target.h"

enum { THREADS = 4, SIGNALS = 12000, FRESH = 512, PERIOD_NS = 40000 };

static pthread_mutex_t few[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t fresh[THREADS][FRESH];
static sem_t fresh_posts[FRESH];
sem_t g_posts;
static atomic_int handled;
static atomic_long own; /* posts outside the handler, and as many waits */
static atomic_bool wrong;

static void handler(int signal)
{
    int before = errno, number = atomic_fetch_add(&handled, 1);
    (void)signal;
    if (sem_post(&g_posts) != 0 || sem_post(&fresh_posts[number % FRESH]) != 0 || errno != before)
        wrong = true;
}

static timer_t start_timer(void)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    struct itimerspec period = {{0, PERIOD_NS}, {0, PERIOD_NS}};
    event._sigev_un._tid = own_tid();
    must(timer_create(CLOCK_MONOTONIC, &event, &timer) ? errno : 0, "timer_create");
    must(timer_settime(timer, 0, &period, NULL) ? errno : 0, "timer_settime");
    return timer;
}

static void *fights(void *argument)
{
    pthread_mutex_t *locks = argument;
    timer_t timer = start_timer();
    long posts = 0;
    for (int i = 0; handled < SIGNALS; i++, posts++) {
        pthread_mutex_lock(&few[i % 2]);
        if (i % 16 == 0) /* so that a thread waits, also on a single processor */
            sched_yield();
        pthread_mutex_unlock(&few[i % 2]);
        pthread_mutex_lock(&locks[i % FRESH]);
        pthread_mutex_unlock(&locks[i % FRESH]);
        if (sem_post(&g_posts) != 0)
            wrong = true;
        while (sem_wait(&g_posts) != 0)
            continue;
        errno = i;
        if (errno != i)
            wrong = true;
    }
    timer_delete(timer);
    own += posts;
    return argument;
}

static void report(void)
{
    char text[300];
    snprintf(text, sizeof text,
             "{\"posts\": %ld, \"waits\": %ld, \"handled\": %d, \"fresh\": %d, "
             "\"fresh_at\": %lu, \"fresh_end\": %lu}",
             own + handled, own, handled, FRESH, (unsigned long)(uintptr_t)fresh_posts,
             (unsigned long)(uintptr_t)(fresh_posts + FRESH));
    say(text);
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    int posts, fresh_count = 0;
    sem_init(&g_posts, 0, 0);
    for (int i = 0; i < FRESH; i++)
        sem_init(&fresh_posts[i], 0, 0);
    sigaction(SIGRTMIN, &action, NULL);
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(fights, fresh[i], NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (argc > 1 && strcmp(argv[1], "report") == 0)
        report();
    sem_getvalue(&g_posts, &posts);
    check_equal("posts", posts, handled);
    for (int i = 0, one; i < FRESH; i++, fresh_count += one)
        sem_getvalue(&fresh_posts[i], &one);
    check_equal("posts to new semaphores", fresh_count, handled);
    check_equal("wrong", wrong, false);
    return verdict_and_stay();
}
