/* Failed trylocks are counted, and are no contention. Says the truth while all locks are still
 * held.
 */
#include <semaphore.h>

#include "../target.h"

enum { MUTEX_TRIES = 11, READ_TRIES = 13, WRITE_TRIES = 17, SEM_TRIES = 19 };

pthread_mutex_t g_tried_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t g_tried_rwlock = PTHREAD_RWLOCK_INITIALIZER;
sem_t g_tried_sem;

static void *trier(void *argument)
{
    for (int i = 0; i < MUTEX_TRIES; i++)
        check_equal("mutex_trylock", pthread_mutex_trylock(&g_tried_lock), EBUSY);
    for (int i = 0; i < READ_TRIES; i++)
        check_equal("tryrdlock", pthread_rwlock_tryrdlock(&g_tried_rwlock), EBUSY);
    for (int i = 0; i < WRITE_TRIES; i++)
        check_equal("trywrlock", pthread_rwlock_trywrlock(&g_tried_rwlock), EBUSY);
    for (int i = 0; i < SEM_TRIES; i++)
        check_equal("sem_trywait", sem_trywait(&g_tried_sem), -1);
    return argument;
}

int main(void)
{
    sem_init(&g_tried_sem, 0, 0);
    check_equal("mutex_trylock", pthread_mutex_trylock(&g_tried_lock), 0);
    check_equal("trywrlock", pthread_rwlock_trywrlock(&g_tried_rwlock), 0);
    pthread_join(start(trier, NULL, "trier"), NULL);
    char text[100];
    snprintf(text, sizeof text, "{\"mutex\": %d, \"rwlock\": %d, \"sem\": %d}", MUTEX_TRIES,
             READ_TRIES + WRITE_TRIES, SEM_TRIES);
    say(text);
    hear();
    pthread_mutex_unlock(&g_tried_lock);
    pthread_rwlock_unlock(&g_tried_rwlock);
    return verdict();
}
