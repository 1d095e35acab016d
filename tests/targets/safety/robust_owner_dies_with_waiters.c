/* Robust mutexes of each kind whose owner dies while others wait. The owner is a thread that ends,
 * or a process that is killed. The next owner, by any form of the call, gets the mutex with
 * EOWNERDEAD. If that owner makes the mutex consistent, the mutex is as before; if not, the waiters
 * get ENOTRECOVERABLE.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../target.h"

enum { FAR_S = 1000 };

/* In memory that the parent and the child share. */
static struct shared {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    atomic_int held, waiting, go;
} *shared;

static int in_lock(void)
{
    return pthread_mutex_lock(&shared->lock);
}

static int in_timedlock(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FAR_S;
    return pthread_mutex_timedlock(&shared->lock, &until);
}

static int in_clocklock(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += FAR_S;
    return pthread_mutex_clocklock(&shared->lock, CLOCK_MONOTONIC, &until);
}

static int in_trylock(void)
{
    int result;
    while ((result = pthread_mutex_trylock(&shared->lock)) == EBUSY)
        sched_yield();
    return result;
}

/* A condition wait takes this mutex again. */
static int in_cond_wait(void)
{
    int result = pthread_mutex_lock(&shared->lock);
    if (result != 0)
        return result;
    shared->waiting++;
    return pthread_cond_wait(&shared->cond, &shared->lock);
}

static int (*const ways[])(void) = {in_lock, in_timedlock, in_clocklock, in_trylock, in_cond_wait};
enum { WAYS = sizeof ways / sizeof *ways };

static void make(int kind, int protocol)
{
    pthread_mutexattr_t attributes;
    pthread_condattr_t shared_cond;
    memset(shared, 0, sizeof *shared);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, kind);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    must(pthread_mutex_init(&shared->lock, &attributes), "pthread_mutex_init");
    pthread_condattr_init(&shared_cond);
    pthread_condattr_setpshared(&shared_cond, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&shared->cond, &shared_cond);
}

static void *dies_with_it(void *argument)
{
    check_equal("lock by who dies", pthread_mutex_lock(&shared->lock), 0);
    shared->held = 1;
    while (!shared->go)
        sched_yield();
    if (argument)
        raise(SIGKILL);
    return argument;
}

static void *waits_for_it(void *argument)
{
    int (*way)(void) = *(int (*const *)(void))argument;
    if (way != in_cond_wait)
        shared->waiting++;
    return (void *)(long)way();
}

static pid_t start_process(void)
{
    pid_t child = fork();
    if (child == 0)
        dies_with_it(shared);
    return child;
}

static void dies_and_is_repaired(int (*const *way)(void), bool process)
{
    pthread_t heir = 0, dying = 0;
    pid_t child = 0;
    void *result = NULL;
    int status;
    if (*way == in_cond_wait) { /* the thread must have slept before */
        heir = start(waits_for_it, (void *)way, NULL);
        while (!shared->waiting)
            sched_yield();
    }
    if (process)
        child = start_process();
    else
        dying = start(dies_with_it, NULL, NULL);
    while (!shared->held)
        sched_yield();
    if (*way == in_cond_wait)
        pthread_cond_signal(&shared->cond);
    else
        heir = start(waits_for_it, (void *)way, NULL);
    while (!shared->waiting)
        sched_yield();
    shared->go = 1;
    if (process)
        check_equal("waitpid", waitpid(child, &status, 0), child);
    else
        check_equal("join", pthread_join(dying, NULL), 0);
    check_equal("join of the heir", pthread_join(heir, &result), 0);
    check_equal("heir", (long)result, EOWNERDEAD);
    /* The next owner ended with the mutex too, so now this thread owns the mutex. */
    check_equal("lock", pthread_mutex_lock(&shared->lock), EOWNERDEAD);
    check_equal("consistent", pthread_mutex_consistent(&shared->lock), 0);
    check_equal("unlock", pthread_mutex_unlock(&shared->lock), 0);
    check_equal("lock again", pthread_mutex_lock(&shared->lock), 0);
    check_equal("unlock again", pthread_mutex_unlock(&shared->lock), 0);
    check_equal("destroy", pthread_mutex_destroy(&shared->lock), 0);
}

/* One waiter only: glibc 2.36 wakes no other. */
static void is_lost_to_who_waits(void)
{
    void *result = NULL;
    pthread_t dying = start(dies_with_it, NULL, NULL);
    while (!shared->held)
        sched_yield();
    shared->go = 1;
    check_equal("join", pthread_join(dying, NULL), 0);
    check_equal("lock", pthread_mutex_lock(&shared->lock), EOWNERDEAD);
    pthread_t waiter = start(waits_for_it, (void *)&ways[0], NULL);
    while (!shared->waiting)
        sched_yield();
    check_equal("unlock unrepaired", pthread_mutex_unlock(&shared->lock), 0);
    check_equal("join of a waiter", pthread_join(waiter, &result), 0);
    check_equal("waiter", (long)result, ENOTRECOVERABLE);
    check_equal("lock of the lost", pthread_mutex_lock(&shared->lock), ENOTRECOVERABLE);
    check_equal("destroy", pthread_mutex_destroy(&shared->lock), 0);
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(shared == MAP_FAILED ? errno : 0, "mmap");
    const int kinds[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
    for (int protocol = PTHREAD_PRIO_NONE; protocol <= PTHREAD_PRIO_INHERIT; protocol++)
        for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
            for (int way = 0; way < WAYS * 2; way++) {
                make(kinds[kind], protocol);
                dies_and_is_repaired(&ways[way / 2], way % 2);
            }
            make(kinds[kind], protocol);
            is_lost_to_who_waits();
        }
    return verdict_and_stay();
}
