/* wakes_holder_then_wants_lock WAY: the first thread holds a lock and waits. The wait is for a
 * barrier, a semaphore, a condition or the end of a thread. Or the wait is for a lock of the second
 * thread (mutex, inherit, rwlock). The mutex of `inherit` has priority inheritance. At a line the
 * second thread ends that wait and then wants the first thread's lock. No thread is deadlocked,
 * however late the first thread runs. Says {"first": tid, "second": tid} when the first thread
 * sleeps. Says "going" when the second thread is about to end the wait, and "ok" at the end.
 */
#include <semaphore.h>

#include "../target.h"

static pthread_mutex_t g_held = PTHREAD_MUTEX_INITIALIZER, g_other = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t g_inherit;
static pthread_rwlock_t g_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static pthread_t ends;
static int first_tid, second_tid, may_begin, may_end, may_go, signalled;
static const char *way;

static int is(const char *name)
{
    return !strcmp(way, name);
}

static void until(int *word)
{
    while (!__atomic_load_n(word, __ATOMIC_SEQ_CST))
        pause_ms(1);
}

/* True if the kernel says that a thread waits, and does not only pause. */
static int is_in_futex(int tid)
{
    char path[64], text[16] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    FILE *file = fopen(path, "r");
    must(file ? 0 : errno, path);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    return length && atoi(text) == SYS_futex;
}

static void *end(void *argument)
{
    until(&may_end);
    return argument;
}

static void wait_for_it(void)
{
    if (is("barrier"))
        pthread_barrier_wait(&barrier);
    else if (is("sem"))
        sem_wait(&sem);
    else if (is("join"))
        pthread_join(ends, NULL);
    else if (is("mutex"))
        pthread_mutex_lock(&g_other);
    else if (is("inherit"))
        pthread_mutex_lock(&g_inherit);
    else if (is("rwlock"))
        pthread_rwlock_wrlock(&g_rwlock);
    else {
        pthread_mutex_lock(&g_other);
        while (!signalled)
            pthread_cond_wait(&cond, &g_other);
        pthread_mutex_unlock(&g_other);
    }
}

static void have_it(void)
{
    if (is("mutex"))
        pthread_mutex_lock(&g_other);
    else if (is("inherit"))
        pthread_mutex_lock(&g_inherit);
    else if (is("rwlock"))
        pthread_rwlock_wrlock(&g_rwlock);
}

static void let_go(void)
{
    if (is("barrier"))
        pthread_barrier_wait(&barrier);
    else if (is("sem"))
        sem_post(&sem);
    else if (is("join"))
        __atomic_store_n(&may_end, 1, __ATOMIC_SEQ_CST);
    else if (is("mutex"))
        pthread_mutex_unlock(&g_other);
    else if (is("inherit"))
        pthread_mutex_unlock(&g_inherit);
    else if (is("rwlock"))
        pthread_rwlock_unlock(&g_rwlock);
    else {
        pthread_mutex_lock(&g_other);
        signalled = 1;
        pthread_cond_signal(&cond);
        pthread_mutex_unlock(&g_other);
    }
}

static void *first(void *argument)
{
    pthread_mutex_lock(&g_held);
    __atomic_store_n(&first_tid, own_tid(), __ATOMIC_SEQ_CST);
    until(&may_begin);
    wait_for_it();
    pthread_mutex_unlock(&g_held);
    return argument;
}

static void *second(void *argument)
{
    have_it();
    __atomic_store_n(&second_tid, own_tid(), __ATOMIC_SEQ_CST);
    until(&may_go);
    say("going");
    let_go();
    pthread_mutex_lock(&g_held);
    pthread_mutex_unlock(&g_held);
    return argument;
}

int main(int argc, char **argv)
{
    char text[80];
    pthread_t threads[2];
    pthread_mutexattr_t inherit;
    way = argc > 1 ? argv[1] : "barrier";
    pthread_barrier_init(&barrier, NULL, 2);
    sem_init(&sem, 0, 0);
    pthread_mutexattr_init(&inherit);
    pthread_mutexattr_setprotocol(&inherit, PTHREAD_PRIO_INHERIT);
    must(pthread_mutex_init(&g_inherit, &inherit), "a mutex that inherits");
    if (is("join"))
        ends = start(end, NULL, NULL);
    threads[0] = start(first, NULL, "first");
    until(&first_tid);
    threads[1] = start(second, NULL, "second");
    until(&second_tid);
    __atomic_store_n(&may_begin, 1, __ATOMIC_SEQ_CST);
    while (!is_in_futex(first_tid))
        pause_ms(1);
    sprintf(text, "{\"first\": %d, \"second\": %d}", first_tid, second_tid);
    say(text);
    hear();
    __atomic_store_n(&may_go, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    say("ok");
    return 0;
}
