/* A chain of waits: the last thread holds one lock and works. The middle thread holds another lock
 * and waits for the last thread's lock. The first thread waits for the middle thread's lock. Says
 * the wait of the first and of the middle thread. Also says how long the middle thread held its
 * lock before its wait.
 */
#include <semaphore.h>

#include "../target.h"

pthread_mutex_t g_near = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_far = PTHREAD_MUTEX_INITIALIZER;
static sem_t far_is_held, near_is_held, first_waits;
static double first_waited, middle_waited, first_requested, middle_requested;
static int first_tid, middle_tid, last_tid;

static KEPT void take_far(void)
{
    pthread_mutex_lock(&g_far);
    sem_post(&far_is_held);
    while (!middle_requested || !is_asleep(middle_tid))
        pause_ms(1);
    pause_ms(150);
    pthread_mutex_unlock(&g_far);
}

static KEPT void take_near(void)
{
    pthread_mutex_lock(&g_near);
    sem_post(&near_is_held);
    sem_wait(&first_waits);
    while (!is_asleep(first_tid))
        pause_ms(1);
    pause_ms(50);
    middle_requested = now();
    pthread_mutex_lock(&g_far);
    middle_waited = now() - middle_requested;
    pthread_mutex_unlock(&g_far);
    pthread_mutex_unlock(&g_near);
}

static void *last(void *unused)
{
    last_tid = own_tid();
    take_far();
    return unused;
}

static void *middle(void *unused)
{
    middle_tid = own_tid();
    sem_wait(&far_is_held);
    take_near();
    return unused;
}

static void *first(void *unused)
{
    first_tid = own_tid();
    sem_wait(&near_is_held);
    sem_post(&first_waits);
    first_requested = now();
    pthread_mutex_lock(&g_near);
    first_waited = now() - first_requested;
    pthread_mutex_unlock(&g_near);
    return unused;
}

int main(void)
{
    sem_init(&far_is_held, 0, 0);
    sem_init(&near_is_held, 0, 0);
    sem_init(&first_waits, 0, 0);
    pthread_t threads[] = {start(last, NULL, "last"), start(middle, NULL, "middle"),
                           start(first, NULL, "first")};
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("{\"first_waited\": %.9f, \"middle_waited\": %.9f, \"before\": %.9f, \"first\": %d,"
           " \"middle\": %d, \"last\": %d}\n",
           first_waited, middle_waited, middle_requested - first_requested, first_tid, middle_tid,
           last_tid);
    fflush(stdout);
    hear();
    return 0;
}
