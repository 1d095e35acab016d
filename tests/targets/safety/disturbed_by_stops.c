/* Threads that an unexpected stop might disturb: disturbed_by_stops spins|forks|counts.
 *
 *   spins    a thread reads the clock all the time: {"tid": ..., "called_from": its call site}
 *   forks    the kernel holds a thread until the child of its vfork ends:
 *            {"tid": ..., "child": ...}, then "ok"
 *   counts   a thread counts SIGRTMIN: {"tid": ...}, at SIGTERM {"signals": ...}
 */
#include <signal.h>
#include <stdatomic.h>

#include "../target.h"

static atomic_int tid, child;
static _Atomic(uintptr_t) called_from;
static volatile double seen;
static volatile sig_atomic_t signals, ended;

static KEPT void reads_the_clock(void)
{
    called_from = (uintptr_t)__builtin_return_address(0);
    tid = own_tid();
    for (;;)
        seen = now();
}

static KEPT void *spins(void *unused)
{
    reads_the_clock();
    return unused;
}

static void spin(void)
{
    start(spins, NULL, NULL);
    while (!tid)
        pause_ms(1);
    printf("{\"tid\": %d, \"called_from\": %lu}\n", tid, (unsigned long)called_from);
    fflush(stdout);
    hear();
}

static void *forks(void *unused)
{
    tid = own_tid();
    pid_t pid = vfork();
    if (pid == 0) {
        child = getpid();
        for (;;)
            pause();
    }
    return unused;
}

static char state_of(int one)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", one);
    FILE *file = fopen(path, "r");
    if (file) {
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
    }
    const char *name_end = strrchr(text, ')');
    return name_end ? name_end[2] : 0;
}

static void fork_one(void)
{
    pthread_t thread = start(forks, NULL, NULL);
    while (!child || state_of(tid) != 'D')
        pause_ms(1);
    printf("{\"tid\": %d, \"child\": %d}\n", tid, child);
    fflush(stdout);
    pthread_join(thread, NULL);
    say("ok");
    hear();
}

static void count(int number)
{
    signals += number == SIGRTMIN;
    ended = ended || number == SIGTERM;
}

static void count_all(void)
{
    sigset_t blocked, none;
    struct sigaction action = {.sa_handler = count};
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGRTMIN);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    sigaction(SIGRTMIN, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    printf("{\"tid\": %d}\n", own_tid());
    fflush(stdout);
    while (!ended)
        sigsuspend(&none);
    printf("{\"signals\": %d}\n", (int)signals);
    fflush(stdout);
    hear();
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    if (!strcmp(way, "spins"))
        spin();
    else if (!strcmp(way, "forks"))
        fork_one();
    else
        count_all();
    return 0;
}
