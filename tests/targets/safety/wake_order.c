/* Threads queue up one after the other; each thread sleeps before the next one comes. The program
 * lets the threads go one after the other. The threads wake in the order of their arrival, which
 * the kernel and glibc keep among equals.
 */
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <threads.h>

#include "../target.h"

enum { WAITERS = 6, TIMES = 5, FAR_S = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static atomic_int tid, order[WAITERS], count;

struct queue {
    const char *name;
    void (*block)(void);   /* before the first thread arrives */
    void (*wait)(int who); /* logs its number when it has the lock, and passes the lock on */
    void (*let_go)(void);  /* wakes one more thread */
    int each;              /* main wakes each thread; otherwise each thread wakes the next */
};

static struct timespec far_away(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += FAR_S;
    return time;
}

static void note(int who)
{
    order[count++] = who;
}

static void lock_it(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_it(void)
{
    pthread_mutex_unlock(&lock);
}

static void in_lock(int who)
{
    pthread_mutex_lock(&lock);
    note(who);
    pthread_mutex_unlock(&lock);
}

static void in_timedlock(int who)
{
    struct timespec until = far_away();
    pthread_mutex_timedlock(&lock, &until);
    note(who);
    pthread_mutex_unlock(&lock);
}

static void wrlock_it(void)
{
    pthread_rwlock_wrlock(&rwlock);
}

static void rwunlock_it(void)
{
    pthread_rwlock_unlock(&rwlock);
}

static void in_wrlock(int who)
{
    pthread_rwlock_wrlock(&rwlock);
    note(who);
    pthread_rwlock_unlock(&rwlock);
}

static void nothing(void)
{
}

static void in_cond_wait(int who)
{
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&cond, &lock);
    note(who);
    pthread_mutex_unlock(&lock);
}

static void in_cond_timedwait(int who)
{
    struct timespec until = far_away();
    pthread_mutex_lock(&lock);
    pthread_cond_timedwait(&cond, &lock, &until);
    note(who);
    pthread_mutex_unlock(&lock);
}

static void signal_it(void)
{
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&lock);
}

static void in_sem_wait(int who)
{
    sem_wait(&sem);
    note(who);
}

static void in_sem_timedwait(int who)
{
    struct timespec until = far_away();
    sem_timedwait(&sem, &until);
    note(who);
}

static void post_it(void)
{
    sem_post(&sem);
}

static const struct queue queues[] = {
    {"mutex_lock", lock_it, in_lock, unlock_it, 0},
    {"mutex_timedlock", lock_it, in_timedlock, unlock_it, 0},
    {"rwlock_wrlock", wrlock_it, in_wrlock, rwunlock_it, 0},
    {"cond_wait", nothing, in_cond_wait, signal_it, 1},
    {"cond_timedwait", nothing, in_cond_timedwait, signal_it, 1},
    {"sem_wait", nothing, in_sem_wait, post_it, 1},
    {"sem_timedwait", nothing, in_sem_timedwait, post_it, 1},
};

struct waiter {
    const struct queue *queue;
    int number;
};

static void *waits(void *argument)
{
    const struct waiter *waiter = argument;
    tid = own_tid();
    waiter->queue->wait(waiter->number);
    return argument;
}

static void queue_up(const struct queue *queue)
{
    pthread_t threads[WAITERS];
    struct waiter waiters[WAITERS];
    count = 0;
    queue->block();
    for (int i = 0; i < WAITERS; i++) {
        tid = 0;
        waiters[i] = (struct waiter){queue, i};
        threads[i] = start(waits, &waiters[i], NULL);
        while (!tid || !is_asleep(tid))
            sched_yield();
    }
    for (int i = 0; i < (queue->each ? WAITERS : 1); i++) {
        queue->let_go();
        while (queue->each && count <= i)
            sched_yield();
    }
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < WAITERS; i++)
        check_equal(queue->name, order[i], i);
}

int main(void)
{
    sem_init(&sem, 0, 0);
    pthread_rwlock_init(&rwlock, NULL);
    for (size_t i = 0; i < TIMES * sizeof queues / sizeof *queues; i++)
        queue_up(&queues[i / TIMES]);
    return verdict();
}
