/* Locks of each kind in memory that two processes share: `process_shared_locks FILE first`, then
 * `process_shared_locks FILE second`. The first process makes the locks and holds those that can be
 * held. The second process has a thread that waits for each lock, until the first process releases
 * them. Then both processes fight for the mutex, and the sum that the mutex guards must be right.
 */
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "../target.h"

enum { WAITERS = 5, TURNS = 20000 };

static struct shared {
    pthread_mutex_t lock, guard;
    pthread_rwlock_t rwlock;
    pthread_cond_t cond;
    pthread_barrier_t barrier;
    sem_t sem;
    int signalled;
    long sum;
    atomic_int sides, ended;
} *shared;

static void make(void)
{
    pthread_mutexattr_t of_mutex;
    pthread_rwlockattr_t of_rwlock;
    pthread_condattr_t of_cond;
    pthread_barrierattr_t of_barrier;
    pthread_mutexattr_init(&of_mutex);
    pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
    pthread_rwlockattr_init(&of_rwlock);
    pthread_rwlockattr_setpshared(&of_rwlock, PTHREAD_PROCESS_SHARED);
    pthread_condattr_init(&of_cond);
    pthread_condattr_setpshared(&of_cond, PTHREAD_PROCESS_SHARED);
    pthread_barrierattr_init(&of_barrier);
    pthread_barrierattr_setpshared(&of_barrier, PTHREAD_PROCESS_SHARED);
    must(pthread_mutex_init(&shared->lock, &of_mutex), "mutex");
    must(pthread_mutex_init(&shared->guard, &of_mutex), "mutex");
    must(pthread_rwlock_init(&shared->rwlock, &of_rwlock), "rwlock");
    must(pthread_cond_init(&shared->cond, &of_cond), "cond");
    must(pthread_barrier_init(&shared->barrier, &of_barrier, 2), "barrier");
    must(sem_init(&shared->sem, 1, 0) ? errno : 0, "sem");
}

static void *in_mutex(void *argument)
{
    check_equal("lock", pthread_mutex_lock(&shared->lock), 0);
    check_equal("unlock", pthread_mutex_unlock(&shared->lock), 0);
    return argument;
}

static void *in_rwlock(void *argument)
{
    check_equal("rdlock", pthread_rwlock_rdlock(&shared->rwlock), 0);
    check_equal("unlock", pthread_rwlock_unlock(&shared->rwlock), 0);
    return argument;
}

static void *in_cond(void *argument)
{
    pthread_mutex_lock(&shared->guard);
    while (!shared->signalled)
        check_equal("cond_wait", pthread_cond_wait(&shared->cond, &shared->guard), 0);
    pthread_mutex_unlock(&shared->guard);
    return argument;
}

static void *in_barrier(void *argument)
{
    int result = pthread_barrier_wait(&shared->barrier);
    check_equal("barrier", result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD, 1);
    return argument;
}

static void *in_sem(void *argument)
{
    check_equal("sem_wait", sem_wait(&shared->sem), 0);
    return argument;
}

static void fight(void)
{
    shared->sides++;
    while (shared->sides < 2)
        sched_yield();
    for (int i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&shared->lock);
        shared->sum++;
        pthread_mutex_unlock(&shared->lock);
    }
    shared->ended++;
    while (shared->ended < 2)
        sched_yield();
    check_equal("sum", shared->sum, 2 * TURNS);
}

static void be_first(void)
{
    make();
    pthread_mutex_lock(&shared->lock);
    pthread_rwlock_wrlock(&shared->rwlock);
    say("held");
    hear();
    pthread_mutex_unlock(&shared->lock);
    pthread_rwlock_unlock(&shared->rwlock);
    pthread_mutex_lock(&shared->guard);
    shared->signalled = 1;
    pthread_cond_broadcast(&shared->cond);
    pthread_mutex_unlock(&shared->guard);
    in_barrier(NULL);
    sem_post(&shared->sem);
}

static void be_second(void)
{
    void *(*const run[WAITERS])(void *) = {in_mutex, in_rwlock, in_cond, in_barrier, in_sem};
    pthread_t threads[WAITERS];
    for (int i = 0; i < WAITERS; i++)
        threads[i] = start(run[i], NULL, NULL);
    say("waiting");
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    int file = open(argc > 2 ? argv[1] : "", O_RDWR);
    must(file < 0 || ftruncate(file, sizeof *shared) ? errno : 0, "the file");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    must(shared == MAP_FAILED ? errno : 0, "mmap");
    if (!strcmp(argv[2], "first"))
        be_first();
    else
        be_second();
    fight();
    return verdict_and_stay();
}
