/* Threads that take turns with g_lock and work all the time: a while inside of it, a while outside. */
#include "target.h"

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int steps;

static KEPT void inside(void)
{
    for (double end = now() + 0.03; now() < end; steps++)
        continue;
    steps++;
}

static KEPT void outside(void)
{
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

int main(void)
{
    for (int i = 0; i < 3; i++)
        start(run, NULL, "runner");
    say("ready");
    hear();
    return 0;
}
