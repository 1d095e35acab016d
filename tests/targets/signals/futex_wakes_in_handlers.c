/* Threads take turns with a lock made of a futex, while signal handlers and forked and vforked
 * children wake the same word. Says "ok" if errno and the counter are right. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 100000, CHILDREN = 20 };

static atomic_int word; /* 0 free, 1 taken, 2 taken and waited for */
static long counter;
static atomic_int handled;

static long futex(int operation, int value)
{
    return syscall(SYS_futex, &word, operation, value, NULL, NULL, 0);
}

static void take(void)
{
    int expected = 0;
    if (atomic_compare_exchange_strong(&word, &expected, 1))
        return;
    while (atomic_exchange(&word, 2) != 0)
        futex(FUTEX_WAIT_PRIVATE, 2);
}

static void give(void)
{
    if (atomic_exchange(&word, 0) == 2)
        futex(FUTEX_WAKE_PRIVATE, 1);
}

static void on_signal(int number)
{
    (void)number;
    errno = EXDEV;
    futex(FUTEX_WAKE_PRIVATE, 1); /* a waiter looks at the word again */
    if (errno == EXDEV)
        atomic_fetch_add(&handled, 1);
}

static void *take_turns(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        take();
        counter++;
        if (i % 64 == 0)
            usleep(1);
        give();
    }
    return unused;
}

static void wake_and_exit(pid_t child)
{
    if (child)
        return;
    futex(FUTEX_WAKE_PRIVATE, 1);
    _exit(7);
}

static pid_t start_fork(void)
{
    pid_t child = fork();
    wake_and_exit(child);
    return child;
}

static pid_t start_vfork(void)
{
    pid_t child = vfork();
    wake_and_exit(child);
    return child;
}

static int run_children(void)
{
    int good = 0;
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = i % 2 ? start_fork() : start_vfork();
        int status = 0;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        good += WIFEXITED(status) && WEXITSTATUS(status) == 7;
    }
    return good == CHILDREN;
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, take_turns, NULL);
    int good = run_children();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    while (atomic_load(&handled) == 0)
        pause();
    good = good && counter == (long)THREADS * ROUNDS;
    puts(good ? "ok" : "failed");
    return !good;
}
