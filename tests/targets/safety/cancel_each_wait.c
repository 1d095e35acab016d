/* Cancellation in each wait, deferred or asynchronous: `cancel_each_wait deferred`,
 * `cancel_each_wait asynchronous`. Where POSIX has a cancellation point the thread ends in the
 * wait. The cleanup handlers hold the mutex of a condition wait. Where POSIX has none the thread
 * first gets what it waits for.
 */
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <threads.h>

#include "../target.h"

enum { FAR_S = 1000 };

static pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t wanted = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t meeting;
static pthread_spinlock_t spinlock;
static mtx_t plain_mtx;
static cnd_t plain_cnd;
static sem_t empty, never;
static pthread_t sleeper;
static int type;
static atomic_int tid, ready, cleaned_up, had_it;

struct wait {
    const char *name;
    void (*wait)(void);
    pthread_mutex_t *mutex; /* held before, and in the cleanup handlers */
};

static struct timespec far_away(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += FAR_S;
    return time;
}

static void do_cond_wait(void)
{
    pthread_cond_wait(&cond, &lock);
}

static void do_cond_timedwait(void)
{
    struct timespec until = far_away(CLOCK_REALTIME);
    pthread_cond_timedwait(&cond, &lock, &until);
}

static void do_cond_clockwait(void)
{
    struct timespec until = far_away(CLOCK_MONOTONIC);
    pthread_cond_clockwait(&cond, &lock, CLOCK_MONOTONIC, &until);
}

static void do_cnd_wait(void)
{
    cnd_wait(&plain_cnd, &plain_mtx);
}

static void do_cnd_timedwait(void)
{
    struct timespec until = far_away(CLOCK_REALTIME);
    cnd_timedwait(&plain_cnd, &plain_mtx, &until);
}

static void do_sem_wait(void)
{
    sem_wait(&empty);
}

static void do_sem_timedwait(void)
{
    struct timespec until = far_away(CLOCK_REALTIME);
    sem_timedwait(&empty, &until);
}

static void do_sem_clockwait(void)
{
    struct timespec until = far_away(CLOCK_MONOTONIC);
    sem_clockwait(&empty, CLOCK_MONOTONIC, &until);
}

static void do_join(void)
{
    pthread_join(sleeper, NULL);
}

static void do_timedjoin(void)
{
    struct timespec until = far_away(CLOCK_REALTIME);
    pthread_timedjoin_np(sleeper, NULL, &until);
}

static void do_clockjoin(void)
{
    struct timespec until = far_away(CLOCK_MONOTONIC);
    pthread_clockjoin_np(sleeper, NULL, CLOCK_MONOTONIC, &until);
}

static void do_thrd_join(void)
{
    thrd_join(sleeper, NULL);
}

static const struct wait points[] = {
    {"cond_wait", do_cond_wait, &lock},
    {"cond_timedwait", do_cond_timedwait, &lock},
    {"cond_clockwait", do_cond_clockwait, &lock},
    {"cnd_wait", do_cnd_wait, (pthread_mutex_t *)&plain_mtx},
    {"cnd_timedwait", do_cnd_timedwait, (pthread_mutex_t *)&plain_mtx},
    {"sem_wait", do_sem_wait, NULL},
    {"sem_timedwait", do_sem_timedwait, NULL},
    {"sem_clockwait", do_sem_clockwait, NULL},
    {"join", do_join, NULL},
    {"timedjoin", do_timedjoin, NULL},
    {"clockjoin", do_clockjoin, NULL},
    {"thrd_join", do_thrd_join, NULL},
};

static void do_lock(void)
{
    pthread_mutex_lock(&wanted);
    had_it = 1;
    pthread_mutex_unlock(&wanted);
}

static void do_timedlock(void)
{
    struct timespec until = far_away(CLOCK_REALTIME);
    had_it = pthread_mutex_timedlock(&wanted, &until) == 0;
    pthread_mutex_unlock(&wanted);
}

static void do_clocklock(void)
{
    struct timespec until = far_away(CLOCK_MONOTONIC);
    had_it = pthread_mutex_clocklock(&wanted, CLOCK_MONOTONIC, &until) == 0;
    pthread_mutex_unlock(&wanted);
}

static void do_mtx_lock(void)
{
    had_it = mtx_lock((mtx_t *)&wanted) == thrd_success;
    mtx_unlock((mtx_t *)&wanted);
}

static void do_rdlock(void)
{
    had_it = pthread_rwlock_rdlock(&rwlock) == 0;
    pthread_rwlock_unlock(&rwlock);
}

static void do_wrlock(void)
{
    had_it = pthread_rwlock_wrlock(&rwlock) == 0;
    pthread_rwlock_unlock(&rwlock);
}

static void do_timedwrlock(void)
{
    struct timespec until = far_away(CLOCK_REALTIME);
    had_it = pthread_rwlock_timedwrlock(&rwlock, &until) == 0;
    pthread_rwlock_unlock(&rwlock);
}

static void do_barrier(void)
{
    pthread_barrier_wait(&meeting);
    had_it = 1;
}

static void do_spin(void)
{
    had_it = pthread_spin_lock(&spinlock) == 0;
    pthread_spin_unlock(&spinlock);
}

static const struct wait others[] = {
    {"lock", do_lock, NULL},
    {"timedlock", do_timedlock, NULL},
    {"clocklock", do_clocklock, NULL},
    {"mtx_lock", do_mtx_lock, NULL},
    {"rdlock", do_rdlock, NULL},
    {"wrlock", do_wrlock, NULL},
    {"timedwrlock", do_timedwrlock, NULL},
    {"barrier", do_barrier, NULL},
    {"spin_lock", do_spin, NULL},
};

static void clean_up(void *argument)
{
    const struct wait *wait = argument;
    cleaned_up++;
    if (wait->mutex) {
        check_equal("owner in the cleanup handler", wait->mutex->__data.__owner, own_tid());
        check_equal("unlock in the cleanup handler", pthread_mutex_unlock(wait->mutex), 0);
    }
}

static void *waits(void *argument)
{
    const struct wait *wait = argument;
    pthread_setcanceltype(type, NULL);
    pthread_cleanup_push(clean_up, argument);
    tid = own_tid();
    if (wait->mutex)
        pthread_mutex_lock(wait->mutex);
    ready = 1;
    wait->wait();
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return argument;
}

static pthread_t start_waiting(const struct wait *wait)
{
    tid = ready = cleaned_up = had_it = 0;
    pthread_t thread = start(waits, (void *)wait, NULL);
    /* After `ready` the thread sleeps nowhere else. */
    while (!ready || (wait->wait != do_spin && !is_asleep(tid)))
        sched_yield();
    return thread;
}

static void ended_by_cancellation(pthread_t thread, const char *name)
{
    void *result = NULL;
    check_equal("join", pthread_join(thread, &result), 0);
    check_equal(name, result == PTHREAD_CANCELED, 1);
    check_equal("cleanup", cleaned_up, 1);
}

static void is_a_point(const struct wait *wait)
{
    pthread_t thread = start_waiting(wait);
    check_equal("cancel", pthread_cancel(thread), 0);
    ended_by_cancellation(thread, wait->name);
    if (!wait->mutex)
        return;
    check_equal("trylock after it", pthread_mutex_trylock(wait->mutex), 0);
    check_equal("unlock after it", pthread_mutex_unlock(wait->mutex), 0);
}

static void take_all(void)
{
    pthread_mutex_lock(&wanted);
    pthread_rwlock_wrlock(&rwlock);
    pthread_spin_lock(&spinlock);
}

static void give_all(const struct wait *wait)
{
    if (wait->wait == do_barrier)
        pthread_barrier_wait(&meeting);
    pthread_mutex_unlock(&wanted);
    pthread_rwlock_unlock(&rwlock);
    pthread_spin_unlock(&spinlock);
}

static void is_no_point(const struct wait *wait)
{
    take_all();
    pthread_t thread = start_waiting(wait);
    check_equal("cancel", pthread_cancel(thread), 0);
    check_equal("goes on waiting", cleaned_up, 0);
    give_all(wait);
    ended_by_cancellation(thread, wait->name);
    check_equal(wait->name, had_it, 1);
}

static void *sleeps_on(void *argument)
{
    sem_wait(&never);
    return argument;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "asynchronous"))
        type = PTHREAD_CANCEL_ASYNCHRONOUS;
    sem_init(&empty, 0, 0);
    sem_init(&never, 0, 0);
    pthread_barrier_init(&meeting, NULL, 2);
    pthread_spin_init(&spinlock, 0);
    mtx_init(&plain_mtx, mtx_plain);
    cnd_init(&plain_cnd);
    sleeper = start(sleeps_on, NULL, NULL);
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        is_a_point(&points[i]);
    /* An asynchronous cancellation may end a thread anywhere. */
    for (size_t i = 0; type == PTHREAD_CANCEL_DEFERRED && i < sizeof others / sizeof *others; i++)
        is_no_point(&others[i]);
    sem_post(&never);
    check_equal("join after all", pthread_join(sleeper, NULL), 0);
    return verdict_and_stay();
}
