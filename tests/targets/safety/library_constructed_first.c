/* The library of locks_before_constructors.c. With -z initfirst its constructor runs before all
 * others.
 */
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <threads.h>

#include "../target.h"

int g_rounds_of_first;
pthread_mutex_t g_lock_of_first = PTHREAD_MUTEX_INITIALIZER;
void first_may_end(void);

static atomic_int over;
static pthread_t thread;

static void *fights(void *argument)
{
    while (!over) {
        pthread_mutex_lock(&g_lock_of_first);
        g_rounds_of_first++;
        sched_yield();
        pthread_mutex_unlock(&g_lock_of_first);
    }
    return argument;
}

void first_may_end(void)
{
    over = 1;
    pthread_join(thread, NULL);
}

static void nothing(void)
{
}

/* Each family of calls once, before any lookup of the functions behind them. */
__attribute__((constructor)) static void comes_first(void)
{
    static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
    static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static pthread_spinlock_t spin;
    static sem_t sem;
    static mtx_t mtx;
    struct timespec past = {0, 0};
    must(pthread_once(&once, nothing), "once");
    must(pthread_rwlock_wrlock(&rwlock), "wrlock");
    must(pthread_rwlock_unlock(&rwlock), "rwlock_unlock");
    must(pthread_spin_init(&spin, 0) | pthread_spin_lock(&spin) | pthread_spin_unlock(&spin),
         "spin");
    must(sem_init(&sem, 0, 0) | sem_post(&sem) | sem_wait(&sem), "sem");
    must(mtx_init(&mtx, mtx_plain) | mtx_lock(&mtx) | mtx_unlock(&mtx), "mtx");
    must(pthread_mutex_lock(&g_lock_of_first), "lock");
    must(pthread_cond_timedwait(&cond, &g_lock_of_first, &past) != ETIMEDOUT, "timedwait");
    must(pthread_mutex_unlock(&g_lock_of_first), "unlock");
    must(syscall(SYS_getpid) != getpid(), "syscall");
    must(pthread_create(&thread, NULL, fights, NULL), "create");
}
