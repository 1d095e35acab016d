/* Waits with a timeout that give up: on a mutex, an rwlock, a condition variable and a semaphore.
 * Says how long each kind of wait took. No wait was successful.
 */
#include <semaphore.h>

#include "../target.h"

enum { ROUNDS = 5, EACH_MS = 40 };

pthread_mutex_t g_kept_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t g_kept_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t cond_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t g_silent_cond = PTHREAD_COND_INITIALIZER;
sem_t g_empty_sem;
static double mutex_s, rwlock_s, cond_s, sem_s;

static struct timespec later(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += EACH_MS * 1000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void *waiter(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct timespec time = later();
        double before = now();
        check_equal("timedlock", pthread_mutex_timedlock(&g_kept_lock, &time), ETIMEDOUT);
        mutex_s += now() - before;
        time = later();
        before = now();
        check_equal("timedrdlock", pthread_rwlock_timedrdlock(&g_kept_rwlock, &time), ETIMEDOUT);
        rwlock_s += now() - before;
        time = later();
        before = now();
        pthread_mutex_lock(&cond_lock);
        check_equal("timedwait", pthread_cond_timedwait(&g_silent_cond, &cond_lock, &time),
                    ETIMEDOUT);
        pthread_mutex_unlock(&cond_lock);
        cond_s += now() - before;
        time = later();
        before = now();
        check_equal("sem_timedwait", sem_timedwait(&g_empty_sem, &time), -1);
        sem_s += now() - before;
    }
    return argument;
}

int main(void)
{
    sem_init(&g_empty_sem, 0, 0);
    pthread_mutex_lock(&g_kept_lock);
    pthread_rwlock_wrlock(&g_kept_rwlock);
    pthread_join(start(waiter, NULL, "patient"), NULL);
    char text[200];
    snprintf(text, sizeof text,
             "{\"mutex\": %.9f, \"rwlock\": %.9f, \"cond\": %.9f, \"sem\": %.9f, \"rounds\": %d}",
             mutex_s, rwlock_s, cond_s, sem_s, ROUNDS);
    say(text);
    hear();
    pthread_mutex_unlock(&g_kept_lock);
    pthread_rwlock_unlock(&g_kept_rwlock);
    return verdict();
}
