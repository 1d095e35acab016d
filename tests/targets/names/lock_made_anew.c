/* A mutex on the heap, for which a thread waits. At a line the program destroys the mutex. Another
 * function makes another one at the same address. Then a thread waits for that one. The program
 * says "ready" at each wait.
 */
#include "../target.h"

static int waiter;

static KEPT void first_owner(pthread_mutex_t *lock)
{
    pthread_mutex_init(lock, NULL);
}

static KEPT void second_owner(pthread_mutex_t *lock)
{
    pthread_mutex_init(lock, NULL);
}

static KEPT void *want(void *lock)
{
    __atomic_store_n(&waiter, own_tid(), __ATOMIC_RELEASE);
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

static void wait_for(pthread_mutex_t *lock)
{
    char line[16];
    int tid;

    pthread_mutex_lock(lock);
    __atomic_store_n(&waiter, 0, __ATOMIC_RELEASE);
    pthread_t thread = start(want, lock, "worker");
    while (!(tid = __atomic_load_n(&waiter, __ATOMIC_ACQUIRE)) || !is_asleep(tid))
        pause_ms(1);
    say("ready");
    if (!fgets(line, sizeof line, stdin))
        exit(0);
    pthread_mutex_unlock(lock);
    must(pthread_join(thread, NULL), "join");
    pthread_mutex_destroy(lock);
}

int main(void)
{
    pthread_mutex_t *lock = malloc(sizeof *lock);

    first_owner(lock);
    wait_for(lock);
    second_owner(lock);
    wait_for(lock);
    free(lock);
    return 0;
}
