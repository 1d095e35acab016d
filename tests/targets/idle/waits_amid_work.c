/* Three sessions wait for the flush of a log, 12 calls deep in their statements. Three threads of a
 * pool wait for work, two calls deep. The thread that flushes is in a read until a line comes.
 */
#include "../target.h"

enum { EACH = 3, CALLS = 12 };

pthread_mutex_t g_log_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t g_log_flushed = PTHREAD_COND_INITIALIZER;
pthread_cond_t g_work_ready = PTHREAD_COND_INITIALIZER;
static int flushed, waiting;

static KEPT void wait_for(pthread_cond_t *signal)
{
    pthread_mutex_lock(&g_log_lock);
    waiting++;
    while (!flushed)
        pthread_cond_wait(signal, &g_log_lock);
    waiting--;
    pthread_mutex_unlock(&g_log_lock);
}

static KEPT int statement(int calls)
{
    if (calls > 1)
        return statement(calls - 1) + 1; /* the sum keeps the frame of the caller */
    wait_for(&g_log_flushed);
    return 1;
}

static void *session(void *argument)
{
    if (statement(CALLS) != CALLS)
        abort();
    return argument;
}

static KEPT void take_work(void)
{
    wait_for(&g_work_ready);
}

static void *worker(void *argument)
{
    take_work();
    return argument;
}

static int all_wait(void)
{
    pthread_mutex_lock(&g_log_lock);
    int all = waiting == 2 * EACH;
    pthread_mutex_unlock(&g_log_lock);
    return all;
}

int main(void)
{
    pthread_t threads[2 * EACH];
    for (int i = 0; i < 2 * EACH; i++)
        threads[i] = i < EACH ? start(session, NULL, "session") : start(worker, NULL, "pool");
    while (!all_wait())
        pause_ms(1);
    say("ready");
    hear();
    pthread_mutex_lock(&g_log_lock);
    flushed = 1;
    pthread_cond_broadcast(&g_log_flushed);
    pthread_cond_broadcast(&g_work_ready);
    pthread_mutex_unlock(&g_log_lock);
    for (int i = 0; i < 2 * EACH; i++)
        pthread_join(threads[i], NULL);
    say("done");
    return 0;
}
