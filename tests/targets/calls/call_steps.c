/* A signal handler runs at each instruction of the hooks, one instruction a round. Each round has a
 * thread of its own, and the processor traps after each instruction of a call. The program is built
 * with -finstrument-functions. The arguments are what the handler does, and the depth of the call.
 * The number of instructions follows, then "first" or "again" for the call.
 *
 *   call   calls a function that takes a while, and returns
 *   exit   ends the thread
 *   bare   makes a child by the bare system call, which calls functions
 */
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "../target.h"

#define PLAIN __attribute__((no_instrument_function))
#define OWN   __attribute__((noinline, noclone))

enum { TRAP_FLAG = 0x100, STACK = 64 << 10, CALLS = 10 };

static volatile long step, stop_at, sink;
static volatile double spin_s;
static int depth, is_again;
static void (*act)(void);
static pthread_barrier_t over;

/* Below the red zone of the caller. */
#define SET_TRAP_FLAG(change)                                                                      \
    __asm__ volatile("sub $128, %%rsp\n pushf\n" change "\n popf\n add $128, %%rsp" ::             \
                         : "memory", "cc")

static PLAIN double clock_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static OWN void work(void)
{
    for (double end = spin_s ? clock_s() + spin_s : 0; end && clock_s() < end;)
        continue;
    sink++;
}

static PLAIN void calls(void)
{
    spin_s = 1e-3;
    work();
    spin_s = 0;
}

static PLAIN void exits(void)
{
    work();
    pthread_exit(NULL);
}

static PLAIN void makes_child(void)
{
    int status = -1;
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0L);
    if (child == 0) {
        for (int i = 0; i < CALLS; i++)
            work();
        syscall(SYS_exit_group, 0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (status)
        failures++;
}

static PLAIN void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    if (++step != stop_at)
        return;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    act();
}

static OWN void stepped(void)
{
    if (is_again)
        work();
    step = 0;
    SET_TRAP_FLAG("orq $0x100, (%%rsp)");
    work();
    SET_TRAP_FLAG("andq $~0x100, (%%rsp)");
    sink++;
}

static OWN void dive(int more)
{
    if (more)
        dive(more - 1);
    else
        stepped();
    sink++;
}

static PLAIN void *dives(void *unused)
{
    dive(depth);
    if (act == exits)
        return unused; /* the call has fewer instructions */
    pthread_barrier_wait(&over);
    pause();
    return unused;
}

PLAIN int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    must(argc == 5 ? 0 : EINVAL, "arguments");
    act = !strcmp(argv[1], "exit") ? exits : !strcmp(argv[1], "bare") ? makes_child : calls;
    depth = atoi(argv[2]);
    is_again = !strcmp(argv[4], "again");
    sigaction(SIGTRAP, &action, NULL);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_barrier_init(&over, NULL, 2);
    for (stop_at = 1; stop_at <= atol(argv[3]); stop_at++) {
        pthread_t thread;
        must(pthread_create(&thread, &attributes, dives, NULL), "pthread_create");
        if (act == exits)
            pthread_join(thread, NULL);
        else
            pthread_barrier_wait(&over);
    }
    return verdict_and_stay();
}
