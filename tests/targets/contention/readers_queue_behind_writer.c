/* Readers queue behind a writer, for a lock that prefers writers. Then one of the two readers that
 * have the lock lets it go, so the word at which they sleep has another value than before.
 *
 * Says "ready" when all sleep; ends with its input.
 */
#include <sched.h>
#include <semaphore.h>

#include "../target.h"

enum { QUEUE = 3 };

pthread_rwlock_t g_table;
static sem_t leave;
static int tids[3 + QUEUE];

static KEPT void read_table(int number)
{
    must(pthread_rwlock_rdlock(&g_table), "rdlock");
    __atomic_store_n(&tids[number], own_tid(), __ATOMIC_RELEASE);
    if (number == 0)
        sem_wait(&leave);
    else
        pause();
    must(pthread_rwlock_unlock(&g_table), "unlock");
}

static KEPT void *hold(void *number)
{
    read_table((int)(intptr_t)number);
    return NULL;
}

static KEPT void *queue(void *number)
{
    __atomic_store_n(&tids[(intptr_t)number], own_tid(), __ATOMIC_RELEASE);
    must(pthread_rwlock_rdlock(&g_table), "rdlock");
    return NULL;
}

static KEPT void *update(void *number)
{
    __atomic_store_n(&tids[(intptr_t)number], own_tid(), __ATOMIC_RELEASE);
    must(pthread_rwlock_wrlock(&g_table), "wrlock");
    return NULL;
}

static pthread_t start_until_asleep(void *(*function)(void *), int number, const char *name)
{
    pthread_t thread = start(function, (void *)(intptr_t)number, name);
    int tid;
    while (!(tid = __atomic_load_n(&tids[number], __ATOMIC_ACQUIRE)) || !is_asleep(tid))
        sched_yield();
    return thread;
}

int main(void)
{
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    must(pthread_rwlock_init(&g_table, &attributes), "init");
    sem_init(&leave, 0, 0);
    pthread_t first = start_until_asleep(hold, 0, "first");
    start_until_asleep(hold, 1, "second");
    start_until_asleep(update, 2, "writer");
    for (int i = 0; i < QUEUE; i++)
        start_until_asleep(queue, 3 + i, "reader");
    sem_post(&leave);
    must(pthread_join(first, NULL), "join");
    say("ready");
    getchar(); /* until stdin has a line or ends */
    _exit(0);
}
