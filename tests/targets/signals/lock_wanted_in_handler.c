/* A thread waits for a lock in its signal handler, for ever. */
#include <signal.h>

#include "../target.h"

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

static KEPT void on_signal(int number)
{
    (void)number;
    pthread_mutex_lock(&g_lock);
}

static KEPT void *interrupted(void *unused)
{
    raise(SIGUSR1);
    return unused;
}

int main(void)
{
    signal(SIGUSR1, on_signal);
    pthread_mutex_lock(&g_lock);
    start(interrupted, NULL, "interrupted");
    say("ready");
    hear();
    return 0;
}
