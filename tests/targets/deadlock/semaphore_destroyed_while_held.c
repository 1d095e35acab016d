/* A thread destroys a semaphore while it holds a unit. The thread makes another semaphore at
 * the same address and never uses the new one. Other threads use the new semaphore as fast as they
 * can. Says the tid of the first thread.
 */
#include <semaphore.h>

#include "../target.h"

enum { WORKERS = 12 };

static sem_t g_sem;
static int left;

static void *leaver(void *argument)
{
    sem_wait(&g_sem);
    must(sem_destroy(&g_sem), "sem_destroy");
    must(sem_init(&g_sem, 0, 1), "sem_init");
    __atomic_store_n(&left, own_tid(), __ATOMIC_SEQ_CST);
    for (;;)
        pause();
    return argument;
}

static void *worker(void *argument)
{
    for (;;) {
        sem_wait(&g_sem);
        usleep(50);
        sem_post(&g_sem);
    }
    return argument;
}

int main(void)
{
    char text[32];
    sem_init(&g_sem, 0, 1);
    sem_wait(&g_sem);
    sem_post(&g_sem);
    start(leaver, NULL, "leaver");
    while (!__atomic_load_n(&left, __ATOMIC_SEQ_CST))
        sched_yield();
    for (int i = 0; i < WORKERS; i++)
        start(worker, NULL, "worker");
    snprintf(text, sizeof text, "%d", left);
    say(text);
    hear();
    return 0;
}
