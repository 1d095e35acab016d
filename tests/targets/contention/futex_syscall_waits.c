/* Waits through the function syscall() of libc. Checks results and errno, says the truth about the
 * waits, and waits until another thread wakes the waiter.
 */
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../target.h"

enum { ROUNDS = 20, PAUSE_MS = 5 };

int g_word, g_last_word;
static double wait_s;
static int waiter_tid, waits, ended;

static long futex(int *word, int operation, int value, const struct timespec *time)
{
    return syscall(SYS_futex, word, operation, value, time, NULL, FUTEX_BITSET_MATCH_ANY);
}

static KEPT void waits_for(int *word, int value)
{
    int seen;
    while ((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) < value)
        waits += futex(word, FUTEX_WAIT_BITSET_PRIVATE, seen, NULL) == 0;
}

static void *waiter(void *argument)
{
    waiter_tid = own_tid();
    for (int round = 1; round <= ROUNDS; round++) {
        double before = now();
        waits_for(&g_word, round);
        wait_s += now() - before;
    }
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    waits_for(&g_last_word, 1);
    return argument;
}

static void fails(const char *what, long result, int error)
{
    int got = errno;
    check_equal(what, result, -1);
    check_equal(what, got, error);
}

static void results(void)
{
    int word = 3;
    struct timespec time = {0, 1000000}, wrong = {0, -1};
    fails("changed", futex(&word, FUTEX_WAIT_PRIVATE, 4, NULL), EAGAIN);
    fails("too late", futex(&word, FUTEX_WAIT_PRIVATE, 3, &time), ETIMEDOUT);
    fails("no time", futex(&word, FUTEX_WAIT_PRIVATE, 3, &wrong), EINVAL);
    fails("no address", futex((int *)8, FUTEX_WAIT_PRIVATE, 3, NULL), EFAULT);
    fails("no operation", futex(&word, 99, 3, NULL), ENOSYS);
    check_equal("wake", futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL), 0);
    word = 0;
    check_equal("lock pi", futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL), 0);
    check_equal("its owner", word & FUTEX_TID_MASK, own_tid());
    fails("lock pi again", futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL), EDEADLK);
    check_equal("unlock pi", futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL), 0);
    errno = E2BIG;
    check_equal("another call", syscall(SYS_gettid), own_tid());
    check_equal("its errno", errno, E2BIG);
    fails("no such call", syscall(100000), ENOSYS);
    fails("six arguments", syscall(SYS_mmap, NULL, 1, PROT_READ, MAP_PRIVATE, -1, 1L), EINVAL);
}

/* A child with its own stack returns from syscall() on that stack. */
static void clones(void)
{
    int status = -1;
    long child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0)
        _exit(9);
    check_equal("wait", waitpid((pid_t)child, &status, 0), child);
    check_equal("child", WEXITSTATUS(status), 9);
}

int main(void)
{
    results();
    clones();
    pthread_t thread = start(waiter, NULL, "waiter");
    for (int round = 1; round <= ROUNDS; round++) {
        pause_ms(PAUSE_MS);
        __atomic_store_n(&g_word, round, __ATOMIC_RELEASE);
        futex(&g_word, FUTEX_WAKE_PRIVATE, 1, NULL);
    }
    while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE))
        pause_ms(1);
    char text[200];
    snprintf(text, sizeof text, "{\"waits\": %d, \"wait_s\": %.9f, \"waiter\": %d}", waits, wait_s,
             waiter_tid);
    say(text);
    hear();
    __atomic_store_n(&g_last_word, 1, __ATOMIC_RELEASE);
    futex(&g_last_word, FUTEX_WAKE_PRIVATE, 1, NULL);
    pthread_join(thread, NULL);
    return verdict();
}
