/* Threads that sleep, each with a call stack of another shape. Says {"way": tid, ...} when all
 * threads sleep. Each function that matters has a frame of its own. The function uses the
 * result of its callee; otherwise its call would be a jump.
 */
#include <alloca.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>

#include "../target.h"

#define STACK (256 << 10)

typedef int way(int);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int ends[2];
static volatile int zero;

static KEPT int waits(int n)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return n + 1;
}

static KEPT int recurses(int n)
{
    volatile char some[24];
    some[n % 24] = (char)n;
    return n ? recurses(n - 1) + some[n % 24] : waits(n) + 2;
}

static KEPT int deep(int n)
{
    return recurses(n + 199) + 1;
}

/* Twenty frames in total, with the frames of libc below and above. */
static KEPT int twenty(int n)
{
    return recurses(n + 11) + 1;
}

/* From here on libc saves no register on the way to the kernel. */
static KEPT int reads(int n)
{
    char c;
    return (int)read(ends[0], &c, 1) + n;
}

static KEPT int large(int n)
{
    char some[40000];
    memset(some, n, sizeof some);
    return (int)read(ends[0], some, sizeof some) + some[n];
}

static KEPT int aligned(int n)
{
    char some[100] __attribute__((aligned(64)));
    memset(some, n, sizeof some);
    return (int)read(ends[0], some, sizeof some) + some[n];
}

static KEPT int aligned_with_arguments(int a, int b, int c, int d, int e, int f, int g, int h)
{
    char some[64] __attribute__((aligned(32)));
    memset(some, a, sizeof some);
    return (int)read(ends[0], some, 1) + b + c + d + e + f + g + h + some[a];
}

static KEPT int many_arguments(int n)
{
    return aligned_with_arguments(n, 1, 2, 3, 4, 5, 6, 7) + 1;
}

static KEPT int takes_some(int n)
{
    char *some = alloca((size_t)n + 100);
    memset(some, n, 100);
    return (int)read(ends[0], some, 100) + some[n];
}

static KEPT int sized(int n)
{
    char some[n + 20];
    memset(some, n, sizeof some);
    return takes_some(n) + some[n];
}

/* Remains of returned calls lie in memory that no later call has overwritten yet. */
static KEPT int leaves_frames(int n)
{
    volatile char some[64];
    some[n % 64] = (char)n;
    return n < 20 ? leaves_frames(n + 1) + some[n % 64] : n;
}

static KEPT int among_old_frames(int n)
{
    char *some = alloca((size_t)n + 2000);
    return (int)read(ends[0], some, 2000) + some[n];
}

static KEPT int stale(int n)
{
    return leaves_frames(n) + among_old_frames(n);
}

static KEPT int chooses(int n)
{
    char some[64] __attribute__((aligned(32)));
    switch (n + 4) {
    case 1: return waits(n) + 7;
    case 2: return deep(n) * 2;
    case 3: return large(n) - 1;
    case 4: return (int)read(ends[0], some, 64) + some[n];
    case 5: return sized(n) - 4;
    case 6: return many_arguments(n) / 2;
    default: return n;
    }
}

static KEPT int compares(const void *left, const void *right)
{
    return waits(*(const int *)left) - *(const int *)right;
}

static KEPT int sorts(int n)
{
    int some[2] = {n, n + 1};
    qsort(some, 2, sizeof *some, compares);
    return some[0];
}

static KEPT int reads_a_line(int n)
{
    char line[16];
    FILE *file = fdopen(ends[0], "r");
    return fgets(line, sizeof line, file) ? line[0] : n;
}

static KEPT int polls(int n)
{
    struct pollfd fd = {.fd = ends[0], .events = POLLIN};
    return poll(&fd, 1, -1) + n;
}

/* A debugger that attaches ends this wait. */
static KEPT int polls_many(int n)
{
    struct epoll_event event;
    int fd = epoll_create1(0), count;
    do
        count = epoll_wait(fd, &event, 1, -1);
    while (count < 0 && errno == EINTR);
    return count + n;
}

static KEPT int rests(int n)
{
    return (int)sleep(100000) + n;
}

static KEPT int awaits_a_signal(int n)
{
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&own);
    return pthread_cond_wait(&cond, &own) + n;
}

static KEPT int awaits_a_post(int n)
{
    return sem_wait(&sem) + n;
}

static KEPT void handler(int number)
{
    int error = errno;
    zero = waits(-number) & 0;
    errno = error;
}

static KEPT int interrupted(int n)
{
    return raise(SIGUSR1) + n;
}

/* In the middle of a function, not in a call. */
static KEPT int faults(int n)
{
    volatile int *nowhere = (volatile int *)(long)zero;
    return *nowhere + n;
}

static KEPT int on_another_stack(int n)
{
    stack_t stack = {.ss_sp = malloc(STACK), .ss_size = STACK};
    sigaltstack(&stack, NULL);
    return faults(n) + 1;
}

static const struct {
    const char *name;
    way *run;
} ways[] = {
    {"waits", waits},
    {"deep", deep},
    {"twenty", twenty},
    {"large", large},
    {"aligned", aligned},
    {"many_arguments", many_arguments},
    {"takes_some", takes_some},
    {"sized", sized},
    {"stale", stale},
    {"chooses", chooses},
    {"sorts", sorts},
    {"reads", reads},
    {"reads_a_line", reads_a_line},
    {"polls", polls},
    {"polls_many", polls_many},
    {"rests", rests},
    {"awaits_a_signal", awaits_a_signal},
    {"awaits_a_post", awaits_a_post},
    {"interrupted", interrupted},
    {"on_another_stack", on_another_stack},
};

enum { WAYS = sizeof ways / sizeof *ways };

static atomic_int tids[WAYS];

static void *run(void *argument)
{
    int number = (int)(intptr_t)argument;
    tids[number] = own_tid();
    return (void *)(intptr_t)(ways[number].run(zero) + 1);
}

int main(void)
{
    char truth[64 * WAYS] = "{";
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    must(pipe(ends) ? errno : 0, "pipe");
    sem_init(&sem, 0, 0);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    pthread_mutex_lock(&lock);
    for (int n = 0; n < WAYS; n++)
        start(run, (void *)(intptr_t)n, NULL);
    for (int n = 0; n < WAYS; n++) {
        while (!tids[n] || !is_asleep(tids[n]))
            pause_ms(1);
        sprintf(truth + strlen(truth), "%s\"%s\": %d", n ? ", " : "", ways[n].name, tids[n]);
    }
    say(strcat(truth, "}"));
    hear();
    return 0;
}
