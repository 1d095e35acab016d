/* Checks that every call returns the right result and leaves errno alone. Calls succeed, fail at
 * once, and give up. POSIX permits a pthread function to change errno.
 * glibc's functions keep errno, and programs rely on that.
 */
#include <semaphore.h>

#include "../target.h"

enum { ODD = 4242 };

#define KEEPS(call, wanted)                                                                        \
    do {                                                                                           \
        errno = ODD;                                                                               \
        long returned = (call);                                                                    \
        int after = errno;                                                                         \
        check_equal(#call, returned, (wanted));                                                    \
        check_equal("errno after " #call, after, ODD);                                             \
    } while (0)

#define SETS(call, wanted_errno)                                                                   \
    do {                                                                                           \
        errno = ODD;                                                                               \
        long returned = (call);                                                                    \
        int after = errno;                                                                         \
        check_equal(#call, returned, -1);                                                          \
        check_equal("errno after " #call, after, (wanted_errno));                                  \
    } while (0)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static pthread_barrier_t in_step;

static struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += ms * 1000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

/* Main holds the mutex and the rwlock. */
static void *against_a_holder(void *argument)
{
    struct timespec soon = in_ms(CLOCK_REALTIME, 5), soon_too = in_ms(CLOCK_MONOTONIC, 10);
    struct timespec nonsense = {.tv_sec = 1, .tv_nsec = -1};
    KEEPS(pthread_mutex_trylock(&lock), EBUSY);
    KEEPS(pthread_mutex_timedlock(&lock, &soon), ETIMEDOUT);
    KEEPS(pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &soon_too), ETIMEDOUT);
    KEEPS(pthread_mutex_timedlock(&lock, &nonsense), EINVAL);
    KEEPS(pthread_rwlock_tryrdlock(&rwlock), EBUSY);
    KEEPS(pthread_rwlock_trywrlock(&rwlock), EBUSY);
    soon = in_ms(CLOCK_REALTIME, 5);
    KEEPS(pthread_rwlock_timedrdlock(&rwlock, &soon), ETIMEDOUT);
    KEEPS(pthread_rwlock_timedwrlock(&rwlock, &soon), ETIMEDOUT);
    KEEPS(pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &soon_too), ETIMEDOUT);
    KEEPS(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &soon_too), ETIMEDOUT);
    pthread_barrier_wait(&in_step);
    KEEPS(pthread_mutex_lock(&lock), 0); /* contended, and acquired in the end */
    KEEPS(pthread_mutex_unlock(&lock), 0);
    KEEPS(pthread_rwlock_rdlock(&rwlock), 0);
    KEEPS(pthread_rwlock_unlock(&rwlock), 0);
    return argument;
}

static void mutex_calls(void)
{
    struct timespec soon = in_ms(CLOCK_REALTIME, 1000), soon_too = in_ms(CLOCK_MONOTONIC, 1000);
    KEEPS(pthread_mutex_lock(&lock), 0);
    KEEPS(pthread_mutex_unlock(&lock), 0);
    KEEPS(pthread_mutex_trylock(&lock), 0);
    KEEPS(pthread_mutex_unlock(&lock), 0);
    KEEPS(pthread_mutex_timedlock(&lock, &soon), 0);
    KEEPS(pthread_mutex_unlock(&lock), 0);
    KEEPS(pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &soon_too), 0);
    KEEPS(pthread_mutex_unlock(&lock), 0);
    pthread_mutex_t local;
    KEEPS(pthread_mutex_init(&local, NULL), 0);
    KEEPS(pthread_mutex_lock(&local), 0);
    KEEPS(pthread_mutex_destroy(&local), EBUSY);
    KEEPS(pthread_mutex_unlock(&local), 0);
    KEEPS(pthread_mutex_destroy(&local), 0);
}

static void rwlock_calls(void)
{
    struct timespec soon = in_ms(CLOCK_REALTIME, 1000), soon_too = in_ms(CLOCK_MONOTONIC, 1000);
    KEEPS(pthread_rwlock_rdlock(&rwlock), 0);
    KEEPS(pthread_rwlock_tryrdlock(&rwlock), 0);
    KEEPS(pthread_rwlock_trywrlock(&rwlock), EBUSY);
    KEEPS(pthread_rwlock_unlock(&rwlock), 0);
    KEEPS(pthread_rwlock_unlock(&rwlock), 0);
    KEEPS(pthread_rwlock_wrlock(&rwlock), 0);
    KEEPS(pthread_rwlock_wrlock(&rwlock), EDEADLK);
    KEEPS(pthread_rwlock_rdlock(&rwlock), EDEADLK);
    KEEPS(pthread_rwlock_unlock(&rwlock), 0);
    KEEPS(pthread_rwlock_timedrdlock(&rwlock, &soon), 0);
    KEEPS(pthread_rwlock_unlock(&rwlock), 0);
    KEEPS(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &soon_too), 0);
    KEEPS(pthread_rwlock_unlock(&rwlock), 0);
    pthread_rwlock_t local;
    KEEPS(pthread_rwlock_init(&local, NULL), 0);
    KEEPS(pthread_rwlock_destroy(&local), 0);
}

static void cond_calls(void)
{
    KEEPS(pthread_mutex_lock(&lock), 0);
    struct timespec soon = in_ms(CLOCK_REALTIME, 5), soon_too = in_ms(CLOCK_MONOTONIC, 10);
    KEEPS(pthread_cond_timedwait(&cond, &lock, &soon), ETIMEDOUT);
    KEEPS(pthread_cond_clockwait(&cond, &lock, CLOCK_MONOTONIC, &soon_too), ETIMEDOUT);
    KEEPS(pthread_mutex_unlock(&lock), 0);
    KEEPS(pthread_cond_signal(&cond), 0);
    KEEPS(pthread_cond_broadcast(&cond), 0);
    pthread_cond_t local;
    KEEPS(pthread_cond_init(&local, NULL), 0);
    KEEPS(pthread_cond_destroy(&local), 0);
}

static void sem_calls(void)
{
    struct timespec soon = in_ms(CLOCK_REALTIME, 5), soon_too = in_ms(CLOCK_MONOTONIC, 10);
    KEEPS(sem_init(&sem, 0, 1), 0);
    KEEPS(sem_wait(&sem), 0);
    SETS(sem_trywait(&sem), EAGAIN);
    SETS(sem_timedwait(&sem, &soon), ETIMEDOUT);
    SETS(sem_clockwait(&sem, CLOCK_MONOTONIC, &soon_too), ETIMEDOUT);
    KEEPS(sem_post(&sem), 0);
    KEEPS(sem_trywait(&sem), 0);
    int value = -1;
    KEEPS(sem_getvalue(&sem, &value), 0);
    check_equal("value", value, 0);
    KEEPS(sem_destroy(&sem), 0);
    SETS(sem_init(&sem, 0, ~0u), EINVAL);
}

static void *returns(void *argument)
{
    return argument;
}

static void thread_calls(void)
{
    pthread_t thread;
    void *result = NULL;
    KEEPS(pthread_create(&thread, NULL, returns, &lock), 0);
    KEEPS(pthread_join(thread, &result), 0);
    check_equal("what the thread returned", result == &lock, 1);
    KEEPS(pthread_join(pthread_self(), NULL), EDEADLK);
    KEEPS(pthread_create(&thread, NULL, returns, NULL), 0);
    KEEPS(pthread_detach(thread), 0);
    KEEPS(pthread_setname_np(pthread_self(), "errno"), 0);
    KEEPS(pthread_setname_np(pthread_self(), "a name that is too long"), ERANGE);
}

int main(void)
{
    mutex_calls();
    rwlock_calls();
    cond_calls();
    sem_calls();
    thread_calls();
    pthread_barrier_init(&in_step, NULL, 2);
    pthread_mutex_lock(&lock);
    pthread_rwlock_wrlock(&rwlock);
    pthread_t thread = start(against_a_holder, NULL, NULL);
    pthread_barrier_wait(&in_step);
    pause_ms(20);
    pthread_rwlock_unlock(&rwlock);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    return verdict();
}
