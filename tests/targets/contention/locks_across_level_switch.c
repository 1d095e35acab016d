/* Lock states that may exist while the level changes:
 *
 *     a lock that is held and waited for
 *     a recursive lock that is held twice
 *     a lock that another thread releases
 *     two locks that are destroyed while they are held
 *
 * Then the program does the same once more.
 */
#include <sched.h>

#include "../target.h"

enum { HOLD_MS = 20, SLEPT_ON = 2 /* glibc's mutex word while a thread sleeps on the mutex */ };

pthread_mutex_t g_met = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_mutex_t g_given = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_kept = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t g_gone = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t taken, given;
static int helper_tid, gone_holder;
/* The library's measured time lies between these two times. */
static double wanted_at, held_since, held_s, held_max_s, waited_s;

static KEPT void meet(void)
{
    double before = now();
    pthread_mutex_lock(&g_met);
    waited_s = now() - before;
    pthread_mutex_unlock(&g_met);
}

static void *helper(void *argument)
{
    helper_tid = own_tid();
    for (;;) {
        pthread_barrier_wait(&taken);
        meet();
        pthread_barrier_wait(&given);
        pthread_mutex_unlock(&g_given); /* a plain mutex permits this */
        /* The address holds a new lock now, with another holder. */
        pthread_rwlock_wrlock(&g_gone);
        gone_holder = own_tid();
        pthread_barrier_wait(&given);
        pthread_barrier_wait(&taken);
        pthread_rwlock_unlock(&g_gone);
        pthread_barrier_wait(&given);
    }
    return argument;
}

static KEPT void take_all(void)
{
    pthread_mutex_lock(&g_again);
    pthread_mutex_lock(&g_again);
    pthread_mutex_lock(&g_given);
    pthread_mutex_lock(&g_kept);
    pthread_rwlock_wrlock(&g_gone);
    wanted_at = now();
    pthread_mutex_lock(&g_met);
    held_since = now();
    pthread_barrier_wait(&taken);
    while (__atomic_load_n(&g_met.__data.__lock, __ATOMIC_ACQUIRE) != SLEPT_ON)
        sched_yield();
}

static KEPT void give_some(void)
{
    pause_ms(HOLD_MS);
    held_s = now() - held_since;
    pthread_mutex_unlock(&g_met);
    held_max_s = now() - wanted_at;
    pthread_mutex_unlock(&g_again);
    check_equal("destroy a mutex that is held", pthread_mutex_destroy(&g_kept), EBUSY);
    must(pthread_rwlock_destroy(&g_gone), "pthread_rwlock_destroy");
    must(pthread_rwlock_init(&g_gone, NULL), "pthread_rwlock_init");
    pthread_barrier_wait(&given);
    pthread_barrier_wait(&given);
}

static KEPT void give_rest(void)
{
    pthread_mutex_unlock(&g_again);
    pthread_mutex_unlock(&g_kept);
    pthread_barrier_wait(&taken);
    pthread_barrier_wait(&given);
}

static void say_truth(void)
{
    char text[400];
    snprintf(text, sizeof text,
             "{\"main\": %d, \"helper\": %d, \"gone_holder\": %d, \"held_s\": %.9f, "
             "\"held_max_s\": %.9f, \"slept_s\": %.3f, \"waited_s\": %.9f, \"failures\": %d}",
             own_tid(), helper_tid, gone_holder, held_s, held_max_s, HOLD_MS / 1e3, waited_s,
             failures);
    say(text);
}

int main(void)
{
    pthread_barrier_init(&taken, NULL, 2);
    pthread_barrier_init(&given, NULL, 2);
    start(helper, NULL, "helper");
    for (;;) {
        take_all();
        say("taken");
        hear();
        give_some();
        say_truth();
        hear();
        give_rest();
        say("given");
        hear();
    }
}
