/* A once routine forks. In the child another thread runs the routine again while the first thread
 * is still in it. A third thread waits. The child says {"pid": its own, "runner": tid, "waiter":
 * tid} and ends with stdin.
 */
#include <signal.h>
#include <sys/wait.h>

#include "../target.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int is_child, runner, waiter;

static KEPT void run(void);

static void *runs_anew(void *argument)
{
    pthread_once(&once, run);
    return argument;
}

static void *waits(void *argument)
{
    __atomic_store_n(&waiter, own_tid(), __ATOMIC_RELEASE);
    pthread_once(&once, run);
    return argument;
}

static void wait_for(const int *tid)
{
    while (!__atomic_load_n(tid, __ATOMIC_ACQUIRE))
        pause_ms(1);
}

static KEPT void in_the_child(void)
{
    char text[100];
    is_child = 1;
    start(runs_anew, NULL, "runner");
    wait_for(&runner);
    start(waits, NULL, "waiter");
    wait_for(&waiter);
    snprintf(text, sizeof text, "{\"pid\": %d, \"runner\": %d, \"waiter\": %d}", getpid(), runner,
             waiter);
    say(text);
    hear();
}

static KEPT void run(void)
{
    if (is_child) {
        __atomic_store_n(&runner, own_tid(), __ATOMIC_RELEASE);
        for (;;)
            pause();
    }
    pid_t child = fork();
    if (child)
        waitpid(child, NULL, 0);
    else
        in_the_child();
}

int main(void)
{
    pthread_once(&once, run);
    return 0;
}
