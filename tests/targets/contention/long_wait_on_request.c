/* A long wait at a known moment. Each line of the input has a number of milliseconds. The main
 * thread holds g_cache_lock for that time, while the thread "worker" waits. Then both fight for
 * another lock 200 times. The program answers with the seconds that the thread waited.
 */
#include "../target.h"

enum { FIGHTS = 200 };

pthread_mutex_t g_cache_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_brief_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t taken, done;
static double wait_s;
static int wanting;

static KEPT void cache_get(void)
{
    double before = now();
    pthread_mutex_lock(&g_cache_lock);
    wait_s = now() - before;
    pthread_mutex_unlock(&g_cache_lock);
}

static KEPT void fight(void)
{
    for (int i = 0; i < FIGHTS; i++) {
        pthread_mutex_lock(&g_brief_lock);
        pthread_mutex_unlock(&g_brief_lock);
    }
}

static void *worker(void *argument)
{
    wanting = own_tid();
    for (;;) {
        pthread_barrier_wait(&taken);
        cache_get();
        fight();
        pthread_barrier_wait(&done);
    }
    return argument;
}

static KEPT void cache_reload(int ms)
{
    pthread_mutex_lock(&g_cache_lock);
    pthread_barrier_wait(&taken);
    while (!is_asleep(wanting)) /* a thread that passed the barrier does not sleep there */
        pause_ms(1);
    pause_ms(ms);
    pthread_mutex_unlock(&g_cache_lock);
}

int main(void)
{
    pthread_barrier_init(&taken, NULL, 2);
    pthread_barrier_init(&done, NULL, 2);
    start(worker, NULL, "worker");
    say("ready");
    for (;;) {
        char line[40];
        if (!fgets(line, sizeof line, stdin) || atoi(line) <= 0)
            return 0;
        int ms = atoi(line);
        cache_reload(ms);
        fight();
        pthread_barrier_wait(&done);
        char text[40];
        snprintf(text, sizeof text, "%.9f", wait_s);
        say(text);
    }
}
