/* A thread leaves its wait for a semaphore by a jump out of a signal handler. The thread keeps a
 * mutex that the holder of the semaphore wants, and sleeps until a line comes. Then all threads
 * continue, and the program says "ok".
 */
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>

#include "../target.h"

static sem_t g_sem;
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static sigjmp_buf gave_up;
static int main_tid, has_it;

static void jump(int signal)
{
    siglongjmp(gave_up, signal);
}

static void *holder(void *argument)
{
    sem_wait(&g_sem);
    sem_post(&g_sem);
    sem_wait(&g_sem);
    __atomic_store_n(&has_it, 1, __ATOMIC_SEQ_CST);
    while (!is_asleep(main_tid)) /* for the semaphore: the thread does nothing else */
        sched_yield();
    syscall(SYS_tgkill, getpid(), main_tid, SIGUSR1);
    pthread_mutex_lock(&g_mutex);
    sem_post(&g_sem);
    pthread_mutex_unlock(&g_mutex);
    return argument;
}

int main(void)
{
    main_tid = own_tid();
    signal(SIGUSR1, jump);
    sem_init(&g_sem, 0, 1);
    pthread_mutex_lock(&g_mutex);
    pthread_t thread = start(holder, NULL, "holder");
    while (!__atomic_load_n(&has_it, __ATOMIC_SEQ_CST))
        sched_yield();
    if (!sigsetjmp(gave_up, 1))
        sem_wait(&g_sem);
    say("gave up");
    hear();
    pthread_mutex_unlock(&g_mutex);
    pthread_join(thread, NULL);
    say("ok");
    return 0;
}
