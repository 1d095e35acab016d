/* A signal handler waits for a lock that another thread holds, at any point of the interrupted
 * thread. The interrupted thread takes free locks, waits for a lock, or waits for a semaphore. The
 * handler must not be noticed: each wait of the thread ends as it would without the handler.
 */
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "../target.h"

enum { SIGNALS = 3000, PERIOD_NS = 100000 };

pthread_mutex_t g_of_handler = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_fought_for = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static sem_t turns;
static atomic_int handled, turns_given, turns_had;
static atomic_bool over;

static void handler(int signal)
{
    int before = errno;
    (void)signal;
    pthread_mutex_lock(&g_of_handler);
    pthread_mutex_unlock(&g_of_handler);
    handled++;
    check_equal("errno", errno, before);
}

/* Holds, most of the time, the locks that the handler and the interrupted thread want. */
static void *holds(void *argument)
{
    pthread_mutex_t *lock = argument;
    while (!over) {
        pthread_mutex_lock(lock);
        sched_yield();
        pthread_mutex_unlock(lock);
    }
    return argument;
}

static void *gives_turns(void *argument)
{
    while (!over) {
        int value;
        sem_getvalue(&turns, &value);
        if (value == 0 && ++turns_given)
            sem_post(&turns);
        sched_yield();
    }
    return argument;
}

static void *interrupted(void *argument)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    struct itimerspec period = {{0, PERIOD_NS}, {0, PERIOD_NS}};
    event._sigev_un._tid = own_tid();
    must(timer_create(CLOCK_MONOTONIC, &event, &timer) ? errno : 0, "timer_create");
    must(timer_settime(timer, 0, &period, NULL) ? errno : 0, "timer_settime");
    while (handled < SIGNALS) {
        for (int i = 0; i < 100; i++) {
            check_equal("lock", pthread_mutex_lock(&own), 0);
            check_equal("unlock", pthread_mutex_unlock(&own), 0);
        }
        check_equal("lock, contended", pthread_mutex_lock(&g_fought_for), 0);
        check_equal("unlock, contended", pthread_mutex_unlock(&g_fought_for), 0);
        if (sem_wait(&turns) == 0)
            turns_had++;
        else
            check_equal("sem_wait", errno, EINTR);
    }
    timer_delete(timer);
    return argument;
}

int main(void)
{
    int left;
    struct sigaction action = {.sa_handler = handler}; /* no SA_RESTART: sem_wait says EINTR */
    sigaction(SIGRTMIN, &action, NULL);
    sem_init(&turns, 0, 0);
    pthread_t others[] = {start(holds, &g_of_handler, NULL), start(holds, &g_fought_for, NULL),
                          start(gives_turns, NULL, NULL)};
    pthread_join(start(interrupted, NULL, NULL), NULL);
    over = true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        pthread_join(others[i], NULL);
    sem_getvalue(&turns, &left);
    check_equal("turns", turns_had + left, turns_given);
    return verdict_and_stay();
}
