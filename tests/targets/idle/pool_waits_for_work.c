/* A pool of idle threads waits on a condition variable. Work comes now and then, one piece at a
 * time, so the program too counts each wait that returns. Says the truth and leaves the pool in its
 * wait. The end of stdin ends the program.
 */
#include "../target.h"

enum { POOL = 4, ITEMS = 40 };

pthread_mutex_t g_work_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t g_work_ready = PTHREAD_COND_INITIALIZER;
static pthread_cond_t item_done = PTHREAD_COND_INITIALIZER;
static int queued, finished, waiting;
static long waits;
static double wait_s;

static KEPT void work_take(void)
{
    pthread_mutex_lock(&g_work_lock);
    waiting++;
    while (!queued) {
        double before = now();
        pthread_cond_wait(&g_work_ready, &g_work_lock);
        wait_s += now() - before;
        waits++;
    }
    waiting--;
    queued--;
    finished++;
    pthread_cond_signal(&item_done);
    pthread_mutex_unlock(&g_work_lock);
}

static void *worker(void *argument)
{
    for (;;)
        work_take();
    return argument;
}

static int ready_to_wait(void)
{
    pthread_mutex_lock(&g_work_lock);
    int all = waiting == POOL;
    pthread_mutex_unlock(&g_work_lock);
    return all;
}

int main(void)
{
    for (int i = 0; i < POOL; i++)
        start(worker, NULL, "pool");
    while (!ready_to_wait())
        pause_ms(1);
    for (int i = 1; i <= ITEMS; i++) {
        pause_ms(5);
        pthread_mutex_lock(&g_work_lock);
        queued++;
        pthread_cond_signal(&g_work_ready);
        while (finished < i)
            pthread_cond_wait(&item_done, &g_work_lock);
        pthread_mutex_unlock(&g_work_lock);
    }
    while (!ready_to_wait())
        pause_ms(1);
    char text[200];
    snprintf(text, sizeof text, "{\"pool\": %d, \"signals\": %d, \"waits\": %ld, \"wait_s\": %.9f}",
             POOL, ITEMS, waits, wait_s);
    say(text);
    hear();
    return 0;
}
