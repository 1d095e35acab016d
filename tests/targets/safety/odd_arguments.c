/* Calls with arguments that are wrong, or that libc does not need. Each call runs in a child, and a
 * line says what it returned, or which signal ended the child. */
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>

#include "../target.h"

enum { NO_CLOCK = 77, NO_TYPE = 0x0c };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, odd_lock;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static mtx_t mutex;
static cnd_t condition;
static sem_t free_sem, taken_sem;
static pthread_t finished, detached;
static const struct timespec past = {0}, nonsense = {.tv_sec = 1, .tv_nsec = -1};
/* The compiler must not see that an argument is NULL: libc's headers forbid some of them. */
static void *volatile nothing;

static void *ends(void *argument)
{
    return argument;
}

static void *hangs(void *argument)
{
    pause();
    return argument;
}

/* The time limit of a call: a hang is a result, too. */
static const struct itimerval limit = {.it_value.tv_sec = 1};

#define IN_CHILD(call)                                                                             \
    do {                                                                                           \
        int status, pid = fork();                                                                  \
        if (pid == 0) {                                                                            \
            setitimer(ITIMER_REAL, &limit, NULL);                                                  \
            errno = 0;                                                                             \
            int result = (call);                                                                   \
            _exit(result == -1 ? 128 + errno : result);                                            \
        }                                                                                          \
        waitpid(pid, &status, 0);                                                                  \
        printf("%s: %s %d\n", #call, WIFEXITED(status) ? "result" : "signal",                      \
               WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));                        \
    } while (0)

static void joins(void)
{
    IN_CHILD(pthread_join(0, NULL));
    IN_CHILD(pthread_tryjoin_np(0, NULL));
    IN_CHILD(pthread_timedjoin_np(0, NULL, &past));
    IN_CHILD(pthread_timedjoin_np(0, NULL, NULL));
    IN_CHILD(pthread_clockjoin_np(0, NULL, CLOCK_MONOTONIC, &past));
    IN_CHILD(thrd_join(0, NULL));
    IN_CHILD(pthread_join(pthread_self(), NULL));
    IN_CHILD(pthread_timedjoin_np(pthread_self(), NULL, &past));
    IN_CHILD(pthread_join(detached, NULL));
    IN_CHILD(pthread_timedjoin_np(detached, NULL, &past));
    IN_CHILD(pthread_timedjoin_np(finished, NULL, &nonsense));
    IN_CHILD(pthread_clockjoin_np(finished, NULL, NO_CLOCK, &past));
    IN_CHILD(pthread_setname_np(pthread_self(), nothing));
    IN_CHILD(pthread_setname_np(pthread_self(), "a name that is too long"));
}

static void semaphores(void)
{
    IN_CHILD(sem_timedwait(&free_sem, nothing));
    IN_CHILD(sem_timedwait(&taken_sem, nothing));
    IN_CHILD(sem_timedwait(&free_sem, &nonsense));
    IN_CHILD(sem_timedwait(&taken_sem, &past));
    IN_CHILD(sem_clockwait(&free_sem, CLOCK_MONOTONIC, nothing));
    IN_CHILD(sem_clockwait(&free_sem, NO_CLOCK, &past));
    IN_CHILD(sem_clockwait(&free_sem, NO_CLOCK, nothing));
    IN_CHILD(sem_wait(nothing));
    IN_CHILD(sem_trywait(nothing));
    IN_CHILD(sem_post(nothing));
    IN_CHILD(sem_init(&free_sem, 0, UINT_MAX));
    IN_CHILD(sem_open("", 0) == SEM_FAILED ? -1 : 0);
    IN_CHILD(sem_open("/a/b", 0) == SEM_FAILED ? -1 : 0);
}

static void mutexes(void)
{
    IN_CHILD(pthread_mutex_timedlock(&lock, nothing));
    IN_CHILD(pthread_mutex_timedlock(&lock, &nonsense));
    IN_CHILD(pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, nothing));
    IN_CHILD(pthread_mutex_clocklock(&lock, NO_CLOCK, nothing));
    IN_CHILD(pthread_mutex_lock(&lock) + pthread_mutex_timedlock(&lock, nothing));
    IN_CHILD(pthread_mutex_lock(nothing));
    IN_CHILD(pthread_mutex_trylock(nothing));
    IN_CHILD(pthread_mutex_unlock(nothing));
    IN_CHILD(pthread_mutex_lock(&odd_lock));
    IN_CHILD(pthread_mutex_trylock(&odd_lock));
    IN_CHILD(pthread_mutex_timedlock(&odd_lock, &past));
    IN_CHILD(pthread_mutex_unlock(&odd_lock));
    IN_CHILD(pthread_mutex_lock(&lock) + pthread_mutex_destroy(&lock));
    IN_CHILD(mtx_timedlock(&mutex, nothing));
    IN_CHILD(mtx_lock(&mutex) + mtx_timedlock(&mutex, nothing));
    IN_CHILD(mtx_init(&mutex, 77));
}

static void others(void)
{
    IN_CHILD(pthread_rwlock_timedrdlock(&rwlock, nothing));
    IN_CHILD(pthread_rwlock_timedwrlock(&rwlock, nothing));
    IN_CHILD(pthread_rwlock_timedwrlock(&rwlock, &nonsense));
    IN_CHILD(pthread_rwlock_clockrdlock(&rwlock, NO_CLOCK, &past));
    IN_CHILD(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, nothing));
    IN_CHILD(pthread_rwlock_unlock(nothing));
    IN_CHILD(pthread_mutex_lock(&lock) + pthread_cond_timedwait(&cond, &lock, nothing));
    IN_CHILD(pthread_mutex_lock(&lock) + pthread_cond_timedwait(&cond, &lock, &nonsense));
    IN_CHILD(pthread_mutex_lock(&lock) + pthread_cond_clockwait(&cond, &lock, NO_CLOCK, &past));
    IN_CHILD(pthread_mutex_lock(&lock) + pthread_cond_clockwait(&cond, &lock, NO_CLOCK, nothing));
    IN_CHILD(pthread_cond_wait(&cond, nothing));
    IN_CHILD(pthread_cond_signal(nothing));
    IN_CHILD(mtx_lock(&mutex) + cnd_timedwait(&condition, &mutex, nothing));
    IN_CHILD(pthread_once(&once, nothing));
    IN_CHILD(pthread_once(nothing, nothing));
    IN_CHILD(pthread_barrier_init(&barrier, NULL, 0));
    IN_CHILD(pthread_barrier_wait(nothing));
    IN_CHILD(pthread_create(nothing, NULL, ends, NULL));
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    sem_init(&free_sem, 0, 1);
    sem_init(&taken_sem, 0, 0);
    mtx_init(&mutex, mtx_timed);
    cnd_init(&condition);
    odd_lock.__data.__kind = NO_TYPE;
    must(pthread_create(&finished, NULL, ends, NULL), "pthread_create");
    must(pthread_create(&detached, NULL, hangs, NULL), "pthread_create");
    must(pthread_detach(detached), "pthread_detach");
    joins();
    semaphores();
    mutexes();
    others();
    return 0;
}
