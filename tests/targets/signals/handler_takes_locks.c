/* A signal handler takes locks of its own at any point of the thread. Meanwhile the thread takes
 * and releases one lock and then two. In the end no lock is held.
 */
#include <signal.h>
#include <sys/time.h>

#include "../target.h"

enum { SIGNALS = 20000 };

pthread_mutex_t g_outer = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_inner = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_of_handler = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_next_of_handler = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t signals;

static void handler(int signal)
{
    (void)signal;
    pthread_mutex_lock(&g_of_handler);
    pthread_mutex_lock(&g_next_of_handler);
    pthread_mutex_unlock(&g_next_of_handler);
    pthread_mutex_unlock(&g_of_handler);
    signals = signals + 1;
}

static void *nothing(void *argument)
{
    return argument;
}

int main(void)
{
    struct itimerval timer = {{0, 50}, {0, 50}}, off = {{0, 0}, {0, 0}};
    pthread_join(start(nothing, NULL, NULL), NULL);
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &timer, NULL);
    while (signals < SIGNALS)
        for (int i = 0; i < 1000; i++) {
            pthread_mutex_lock(&g_outer);
            if (i % 2)
                pthread_mutex_lock(&g_inner);
            if (i % 2)
                pthread_mutex_unlock(&g_inner);
            pthread_mutex_unlock(&g_outer);
        }
    setitimer(ITIMER_REAL, &off, NULL);
    say("{\"held\": 0}");
    hear();
    return 0;
}
