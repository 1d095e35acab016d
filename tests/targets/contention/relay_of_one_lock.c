/* Threads take turns with g_lock. Each thread works a while with the lock, and works or rests
 * without the lock.
 */
#include "../target.h"

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int steps;
static int rests;

static KEPT void inside(void)
{
    for (double end = now() + 0.03; now() < end; steps++)
        continue;
    steps++;
}

static KEPT void outside(void)
{
    if (rests)
        pause_ms(5);
    if (rests)
        return;
    for (double end = now() + 0.01; now() < end; steps++)
        continue;
    steps++;
}

static KEPT void *run(void *unused)
{
    for (;;) {
        must(pthread_mutex_lock(&g_lock), "lock");
        inside();
        must(pthread_mutex_unlock(&g_lock), "unlock");
        outside();
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
