/* Misuses of pthreads, `pthread_misuses WHAT`. Each misuse comes after a similar use that is
 * permitted. Says "ready" when all is done, and stays for a scan.
 *
 *   others       a thread releases a mutex that another thread holds
 *   wrothers     the same with a write lock
 *   free         a thread releases a mutex that no thread holds
 *   rwfree       the same with a reader-writer lock
 *   again        the holder of an error-checking mutex asks for the mutex again
 *   wragain      the same with a write lock
 *   destroyheld  the holder of a mutex destroys the mutex
 *   destroyothers another thread destroys a mutex that is held
 *   destroyrw    a thread destroys a reader-writer lock that is read-locked
 *   destroywaited a thread destroys a mutex that was released, but has waiters
 *   twomutexes   two threads wait for one condition, each with a mutex of its own
 *   kept         a thread ends and holds a mutex (and the collector finds the dead thread)
 *   unheard      a thread signals a condition that no thread waits for
 */
#include <semaphore.h>

#include "../target.h"

pthread_mutex_t g_wrong = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_right = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t g_wrong_rw = PTHREAD_RWLOCK_INITIALIZER;
pthread_rwlock_t g_right_rw = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t g_wrong_cond = PTHREAD_COND_INITIALIZER;
pthread_cond_t g_right_cond = PTHREAD_COND_INITIALIZER;
static sem_t step;
static int waiters;

static KEPT void do_wrong(void (*call)(void))
{
    call();
    __asm__ volatile("");
}

static void unlock(void)
{
    pthread_mutex_unlock(&g_wrong);
}

static void unlock_rw(void)
{
    pthread_rwlock_unlock(&g_wrong_rw);
}

static void lock(void)
{
    check_equal("lock again", pthread_mutex_lock(&g_wrong), EDEADLK);
}

static void lock_rw(void)
{
    check_equal("wrlock again", pthread_rwlock_wrlock(&g_wrong_rw), EDEADLK);
}

static void destroy(void)
{
    pthread_mutex_destroy(&g_wrong);
}

static void destroy_rw(void);

static void unlock_and_destroy_rw(void)
{
    unlock_rw();
    destroy_rw();
}

static void wait_unheld(void)
{
    pthread_cond_timedwait(&g_wrong_cond, &g_wrong, &(struct timespec){0});
}

static void destroy_rw(void)
{
    pthread_rwlock_destroy(&g_wrong_rw);
}

/* ---- other threads, one step after the other ---- */

static void run(void *(*thread)(void *))
{
    pthread_join(start(thread, NULL, "other"), NULL);
}

static void *unlock_of_others(void *unused)
{
    do_wrong(unlock);
    return unused;
}

static void *unlock_rw_of_others(void *unused)
{
    do_wrong(unlock_rw);
    return unused;
}

static void *destroy_of_others(void *unused)
{
    do_wrong(destroy);
    return unused;
}

/* A mutex that changes hands correctly. */
static void *take_and_give(void *unused)
{
    pthread_mutex_lock(&g_right);
    pthread_mutex_unlock(&g_right);
    pthread_rwlock_wrlock(&g_right_rw);
    pthread_rwlock_unlock(&g_right_rw);
    return unused;
}

static void *keep(void *unused)
{
    pthread_mutex_lock(&g_wrong);
    return unused;
}

static void *nothing(void *unused)
{
    return unused;
}

static void *wait_for_it(void *tid)
{
    *(int *)tid = own_tid();
    sem_post(&step);
    pthread_mutex_lock(&g_wrong); /* for good: another thread destroys the mutex meanwhile */
    return NULL;
}

static void *wait_with(void *mutex)
{
    pthread_mutex_lock(mutex);
    waiters++;
    sem_post(&step);
    pthread_cond_wait(&g_wrong_cond, mutex);
    pthread_mutex_unlock(mutex);
    return NULL;
}

/* Returns when the thread sleeps in its wait and its mutex is free. */
static void wait_until_it_waits(pthread_mutex_t *mutex)
{
    sem_wait(&step);
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
}

static void two_mutexes(void)
{
    /* One mutex after the other is permitted. */
    struct timespec past = {.tv_sec = 1};
    for (int i = 0; i < 2; i++) {
        pthread_mutex_t *mutex = i ? &g_right : &g_wrong;
        pthread_mutex_lock(mutex);
        pthread_cond_timedwait(&g_right_cond, mutex, &past);
        pthread_mutex_unlock(mutex);
    }
    pthread_t first = start(wait_with, &g_right, "first");
    wait_until_it_waits(&g_right);
    pthread_t second = start(wait_with, &g_wrong, "second");
    wait_until_it_waits(&g_wrong);
    pthread_cond_broadcast(&g_wrong_cond);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
}

static void destroy_while_waited_for(void)
{
    int tid = 0;
    pthread_mutex_lock(&g_wrong);
    pthread_detach(start(wait_for_it, &tid, "waiter"));
    sem_wait(&step);
    while (!is_asleep(tid))
        pause_ms(1);
    /* As glibc's unlock, but without a wake-up. */
    g_wrong.__data.__owner = 0;
    g_wrong.__data.__nusers = 0;
    g_wrong.__data.__lock = 0;
    do_wrong(destroy);
}

static void make(int type)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    pthread_mutex_init(&g_wrong, &attributes);
    pthread_mutex_init(&g_right, &attributes);
}

/* Everything that pthreads permits. */
static void do_right(void)
{
    for (int i = 0; i < 3; i++) {
        take_and_give(NULL);
        run(take_and_give);
    }
    pthread_rwlock_rdlock(&g_right_rw);
    pthread_rwlock_rdlock(&g_right_rw);
    pthread_rwlock_unlock(&g_right_rw);
    pthread_rwlock_unlock(&g_right_rw);
    pthread_mutex_lock(&g_right);
    check_equal("trylock", pthread_mutex_trylock(&g_right), EBUSY);
    pthread_mutex_unlock(&g_right);
    pthread_mutex_t passing = PTHREAD_MUTEX_INITIALIZER;
    pthread_rwlock_t passing_rw = PTHREAD_RWLOCK_INITIALIZER;
    pthread_mutex_lock(&passing);
    pthread_mutex_unlock(&passing);
    pthread_mutex_destroy(&passing);
    pthread_rwlock_rdlock(&passing_rw);
    pthread_rwlock_unlock(&passing_rw);
    pthread_rwlock_destroy(&passing_rw);
}

static void kept(void)
{
    run(keep);
    for (int i = 0; i < 300;
         i++) { /* more than there are blocks for, so that the library searches for dead threads */
        pthread_t threads[1] = {start(nothing, NULL, NULL)};
        pthread_join(threads[0], NULL);
    }
}

static void do_it(const char *what)
{
    if (!strcmp(what, "others")) {
        pthread_mutex_lock(&g_wrong);
        run(unlock_of_others);
    } else if (!strcmp(what, "wrothers")) {
        pthread_rwlock_wrlock(&g_wrong_rw);
        run(unlock_rw_of_others);
    } else if (!strcmp(what, "free")) {
        pthread_mutex_lock(&g_wrong);
        pthread_mutex_unlock(&g_wrong);
        do_wrong(unlock);
    } else if (!strcmp(what, "nevertaken")) {
        do_wrong(unlock);
    } else if (!strcmp(what, "waitunheld")) {
        make(PTHREAD_MUTEX_ERRORCHECK);
        do_wrong(wait_unheld);
    } else if (!strcmp(what, "rwfreedestroy")) {
        pthread_rwlock_rdlock(&g_wrong_rw);
        pthread_rwlock_unlock(&g_wrong_rw);
        do_wrong(unlock_and_destroy_rw);
    } else if (!strcmp(what, "rwfree")) {
        pthread_rwlock_rdlock(&g_wrong_rw);
        pthread_rwlock_unlock(&g_wrong_rw);
        do_wrong(unlock_rw);
    } else if (!strcmp(what, "again")) {
        make(PTHREAD_MUTEX_ERRORCHECK);
        pthread_mutex_lock(&g_wrong);
        do_wrong(lock);
        pthread_mutex_unlock(&g_wrong);
    } else if (!strcmp(what, "wragain")) {
        pthread_rwlock_wrlock(&g_wrong_rw);
        do_wrong(lock_rw);
        pthread_rwlock_unlock(&g_wrong_rw);
    } else if (!strcmp(what, "destroyheld")) {
        pthread_mutex_lock(&g_wrong);
        do_wrong(destroy);
    } else if (!strcmp(what, "destroyothers")) {
        pthread_mutex_lock(&g_wrong);
        run(destroy_of_others);
    } else if (!strcmp(what, "destroyrw")) {
        pthread_rwlock_rdlock(&g_wrong_rw);
        do_wrong(destroy_rw);
    } else if (!strcmp(what, "destroywaited")) {
        destroy_while_waited_for();
    } else if (!strcmp(what, "twomutexes")) {
        two_mutexes();
    } else if (!strcmp(what, "kept")) {
        kept();
    } else if (!strcmp(what, "unheard")) {
        for (int i = 0; i < 3; i++)
            pthread_cond_signal(&g_wrong_cond);
        pthread_cond_broadcast(&g_wrong_cond);
        pthread_t waiter = start(wait_with, &g_right, "heard");
        wait_until_it_waits(&g_right);
        pthread_cond_signal(&g_wrong_cond);
        pthread_join(waiter, NULL);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    sem_init(&step, 0, 0);
    if (!strcmp(what, "again"))
        make(PTHREAD_MUTEX_ERRORCHECK);
    do_right();
    do_it(what);
    say(failures ? "failed" : "ready");
    hear();
    _exit(0);
}
