/* Makes the library grow: new locks, new threads with new stacks, waits. Before that
 * the process restricts itself as programs do: `grows_under_restrictions HOW
 * [LOCKS-OF-EACH-THREAD]`.
 *
 *   nothing
 *   fds                 closes all descriptors, and opens own files with these numbers
 *   nofile              forbids itself more descriptors
 *   fsize               forbids itself larger files
 *   uid, euid           becomes another user
 *   undumpable          hides its memory, as programs with secrets do
 *   chroot, unshare     changes its root; leaves its namespaces
 *
 * Every result must be right, and then once more in a forked child. The process stays for a scan.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../target.h"

enum {
    THREADS = 3,
    TIMES = 15,
    MAX_LOCKS = 9000,
    ROUNDS = 20,
    DEPTH = 12,
    FILES = 40,
    NOBODY = 65534
};

static pthread_mutex_t table[TIMES][MAX_LOCKS];
pthread_mutex_t g_fought_for = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t meeting;
static long sum;
static int locks_each = 100;
static struct stat files[FILES];

static KEPT void at_depth(int depth) /* each a stack of its own */
{
    if (depth > 0) {
        at_depth(depth - 1);
        __asm__ volatile(""); /* no tail call */
        return;
    }
    pthread_mutex_lock(&g_fought_for);
    sum++;
    sched_yield();
    pthread_mutex_unlock(&g_fought_for);
}

static void *works(void *argument)
{
    pthread_mutex_t *locks = argument;
    pthread_barrier_wait(&meeting);
    for (int i = 0; i < ROUNDS; i++)
        at_depth(i % DEPTH);
    for (int i = 0; i < locks_each; i++) {
        check_equal("lock", pthread_mutex_lock(&locks[i]), 0);
        if (i % 30)
            check_equal("unlock", pthread_mutex_unlock(&locks[i]), 0);
    }
    for (int i = 0; i < locks_each; i += 30)
        check_equal("unlock in the end", pthread_mutex_unlock(&locks[i]), 0);
    return argument;
}

static void run_all(void)
{
    sum = 0;
    pthread_barrier_init(&meeting, NULL, THREADS);
    for (int time = 0; time < TIMES; time += THREADS) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            threads[i] = start(works, table[time + i], NULL);
        for (int i = 0; i < THREADS; i++)
            check_equal("join", pthread_join(threads[i], NULL), 0);
    }
    check_equal("sum", sum, TIMES * ROUNDS);
}

static void own_all_files(void)
{
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    for (int i = 0; i < FILES; i++)
        must(open("/dev/null", O_RDWR) == i + 3 ? 0 : EBADF, "the lowest number that is free");
    for (int i = 0; i < FILES; i++)
        must(fstat(i + 3, &files[i]) ? errno : 0, "fstat");
}

static void still_own_all_files(void)
{
    struct stat now_there;
    for (int i = 0; i < FILES; i++) {
        check_equal("fstat", fstat(i + 3, &now_there), 0);
        check_equal("the same file", now_there.st_rdev == files[i].st_rdev, 1);
    }
    check_equal("the next number", fcntl(FILES + 3, F_GETFD), -1);
}

static void limit(int what, rlim_t value)
{
    struct rlimit limits = {value, value};
    must(setrlimit((__rlimit_resource_t)what, &limits) ? errno : 0, "setrlimit");
}

static void do_to_oneself(const char *how)
{
    int failed = 0;
    if (!strcmp(how, "fds"))
        own_all_files();
    else if (!strcmp(how, "nofile"))
        limit(RLIMIT_NOFILE, 0);
    else if (!strcmp(how, "fsize"))
        limit(RLIMIT_FSIZE, 0);
    else if (!strcmp(how, "uid"))
        failed = setresuid(NOBODY, NOBODY, NOBODY);
    else if (!strcmp(how, "euid"))
        failed = seteuid(NOBODY);
    else if (!strcmp(how, "undumpable"))
        failed = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    else if (!strcmp(how, "chroot"))
        failed = chroot("/proc/self/fdinfo") || chdir("/");
    else if (!strcmp(how, "unshare"))
        failed = unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_FILES | CLONE_FS);
    must(failed ? errno : 0, how);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "nothing";
    int status = -1;
    if (argc > 2 && atoi(argv[2]) <= MAX_LOCKS)
        locks_each = atoi(argv[2]);
    pthread_mutex_lock(&table[0][0]);
    do_to_oneself(how);
    pthread_mutex_unlock(&table[0][0]);
    run_all();
    pid_t child = fork();
    if (child == 0) {
        run_all();
        _exit(failures != 0);
    }
    check_equal("waitpid", waitpid(child, &status, 0), child);
    check_equal("child", status, 0);
    if (!strcmp(how, "fds"))
        still_own_all_files();
    return verdict_and_stay();
}
