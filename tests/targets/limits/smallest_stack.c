/* Threads with the smallest possible stack fight for locks of each kind and wait in each way. A
 * guard page lies below each stack. The threads use BYTES of their stack themselves:
 * `smallest_stack BYTES`.
 */
#include <alloca.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <threads.h>

#include "../target.h"

enum { THREADS = 4, ROUNDS = 300, GUARD = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t meeting;
static sem_t turn;
static size_t own_use;
static int rounds, turns;
static atomic_int ended;

static void nothing(void)
{
}

static KEPT void wait_in_each_way(int i)
{
    pthread_once(&once, nothing);
    pthread_barrier_wait(&meeting);
    pthread_mutex_lock(&lock);
    sched_yield(); /* the other threads wait */
    if (++rounds % THREADS == 0)
        pthread_cond_broadcast(&cond);
    else
        for (int mine = (rounds + THREADS - 1) / THREADS; rounds < mine * THREADS;)
            pthread_cond_wait(&cond, &lock);
    pthread_mutex_unlock(&lock);
    if (i % 2)
        pthread_rwlock_wrlock(&rwlock);
    else
        pthread_rwlock_rdlock(&rwlock);
    sched_yield();
    pthread_rwlock_unlock(&rwlock);
    sem_wait(&turn);
    turns++;
    sched_yield();
    sem_post(&turn);
}

static KEPT void use_some(int i)
{
    volatile char *room = alloca(own_use);
    room[0] = room[own_use - 1] = 1;
    wait_in_each_way(i);
}

static void *fights(void *argument)
{
    for (int i = 0; i < ROUNDS; i++)
        use_some(i);
    ended++;
    return argument;
}

static char *new_stack(size_t size)
{
    char *stack =
        mmap(NULL, GUARD + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(stack == MAP_FAILED ? errno : 0, "mmap");
    must(mprotect(stack, GUARD, PROT_NONE) ? errno : 0, "mprotect");
    return stack + GUARD;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    size_t size = (size_t)sysconf(_SC_THREAD_STACK_MIN);
    pthread_attr_t attributes;
    own_use = argc > 1 ? (size_t)atoi(argv[1]) : 1;
    sem_init(&turn, 0, 1);
    pthread_barrier_init(&meeting, NULL, THREADS);
    pthread_attr_init(&attributes);
    for (int i = 0; i < THREADS; i++) {
        must(pthread_attr_setstack(&attributes, new_stack(size), size), "setstack");
        must(pthread_create(&threads[i], &attributes, fights, NULL), "pthread_create");
    }
    while (ended < THREADS) /* not in a join: these threads must be the first to wait */
        sched_yield();
    for (int i = 0; i < THREADS; i++)
        check_equal("join", pthread_join(threads[i], NULL), 0);
    check_equal("turns", turns, THREADS * ROUNDS);
    return verdict_and_stay();
}
