/* Cancellation in a condition wait (the cleanup handler holds the mutex again), in sem_wait and in
 * join. Also cancellation at a sem_wait that need not block, which is a cancellation point all the
 * same. pthread_mutex_lock is no cancellation point.
 */
#include <semaphore.h>

#include "../target.h"

static pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t empty, full, waiting;
static int cleaned_up;
static pthread_t sleeper;

static void unlock_it(void *argument)
{
    check_equal("unlock in the cleanup handler", pthread_mutex_unlock(argument), 0);
    cleaned_up++;
}

static void count_it(void *argument)
{
    (void)argument;
    cleaned_up++;
}

static void *in_cond_wait(void *argument)
{
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(unlock_it, &lock);
    sem_post(&waiting);
    for (;;)
        pthread_cond_wait(&cond, &lock);
    pthread_cleanup_pop(1);
    return argument;
}

static void *in_sem_wait(void *argument)
{
    pthread_cleanup_push(count_it, NULL);
    sem_post(&waiting);
    sem_wait(&empty);
    pthread_cleanup_pop(0);
    return argument;
}

static void *in_join(void *argument)
{
    pthread_cleanup_push(count_it, NULL);
    sem_post(&waiting);
    pthread_join(sleeper, NULL);
    pthread_cleanup_pop(0);
    return argument;
}

/* With a cancellation that is already pending. */
static void *at_ready_sem_wait(void *argument)
{
    pthread_cleanup_push(count_it, NULL);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    sem_post(&waiting);
    sem_wait(&empty);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_mutex_lock(&lock); /* no cancellation point */
    pthread_mutex_unlock(&lock);
    cleaned_up += 100;
    sem_wait(&full);
    pthread_cleanup_pop(0);
    return argument;
}

static void *sleeps(void *argument)
{
    sem_wait(&empty);
    return argument;
}

/* The post of `wake` follows the request for cancellation. */
static void cancelled(const char *what, void *(*run)(void *), sem_t *wake, int wanted_clean_up)
{
    void *result = NULL;
    cleaned_up = 0;
    pthread_t thread = start(run, NULL, what);
    sem_wait(&waiting);
    pause_ms(10); /* the thread most likely waits by now; otherwise the result is the same */
    check_equal("pthread_cancel", pthread_cancel(thread), 0);
    if (wake)
        sem_post(wake);
    check_equal("pthread_join", pthread_join(thread, &result), 0);
    check_equal(what, result == PTHREAD_CANCELED, 1);
    check_equal("cleanup", cleaned_up, wanted_clean_up);
}

int main(void)
{
    sem_init(&empty, 0, 0);
    sem_init(&full, 0, 1);
    sem_init(&waiting, 0, 0);
    cancelled("cond_wait", in_cond_wait, NULL, 1);
    check_equal("lock after it", pthread_mutex_lock(&lock), 0);
    check_equal("unlock after it", pthread_mutex_unlock(&lock), 0);
    cancelled("sem_wait", in_sem_wait, NULL, 1);
    sleeper = start(sleeps, NULL, "sleeper");
    cancelled("join", in_join, NULL, 1);
    sem_post(&empty);
    check_equal("the one not joined", pthread_join(sleeper, NULL), 0);
    cancelled("ready sem_wait", at_ready_sem_wait, &empty, 101);
    int value = -1;
    sem_getvalue(&full, &value);
    check_equal("value that was left", value, 1);
    return verdict();
}
