/* Nobody reads a log. One thread holds the lock of stdout, and waits for room in the pipe behind
 * it. The others wait for the lock. */
#include "../target.h"

enum { WORKERS = 5 };

static KEPT void log_event(int worker, int event)
{
    fprintf(stdout, "worker %d event %d: a line of a log that nobody reads\n", worker, event);
    fflush(stdout);
}

static void *work(void *argument)
{
    for (int event = 0;; event++)
        log_event((int)(intptr_t)argument, event);
    return argument;
}

int main(void)
{
    int log[2];
    must(pipe(log), "pipe");
    say("ready");
    dup2(log[1], 1);
    pthread_t workers[WORKERS];
    for (intptr_t number = 0; number < WORKERS; number++)
        workers[number] = start(work, (void *)number, "worker");
    pthread_join(workers[0], NULL);
}
