/* Threads take turns with g_lock. Each thread works a while with the lock, and works or rests
 * without the lock. The work is CPU time, so on a busy machine the shares stay the same.
 */
#include "../target.h"

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int steps;
static int rests;

static double cpu_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static KEPT void works_with_lock(void)
{
    for (double end = cpu_time() + 0.03; cpu_time() < end; steps++)
        continue;
    steps++;
}

static KEPT void works_without_lock(void)
{
    if (rests)
        pause_ms(5);
    if (rests)
        return;
    for (double end = cpu_time() + 0.01; cpu_time() < end; steps++)
        continue;
    steps++;
}

static KEPT void *run(void *unused)
{
    for (;;) {
        must(pthread_mutex_lock(&g_lock), "lock");
        works_with_lock();
        must(pthread_mutex_unlock(&g_lock), "unlock");
        works_without_lock();
    }
    return unused;
}

int main(int argc, char **argv)
{
    rests = argc > 1 && strcmp(argv[1], "rests") == 0;
    for (int i = 0; i < 3; i++)
        start(run, NULL, "runner");
    say("ready");
    hear();
    return 0;
}
