/* A program that confines itself. The kernel kills the process for any system call that the program
 * without the library does not make. `seccomp_sandboxed HOW`:
 *
 *   prctl, seccomp, raw   how the filter is installed; then threads come and go, meet and fight,
 *                         take more locks than ever before, and fork
 *   strict                only read, write and exit are left; and uncontended locks
 *   refused               a filter that the kernel refuses: nothing changes
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <semaphore.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../target.h"

enum { THREADS = 4, TIMES = 60, LOCKS = 30000, ROUNDS = 500 };

static pthread_mutex_t table[LOCKS];
pthread_mutex_t g_confined = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static sem_t posts;
static long sum;

/* The system calls that glibc makes for this program, and no others. */
static const int allowed[] = {
    SYS_read,        SYS_write,           SYS_exit,
    SYS_exit_group,  SYS_futex,           SYS_mmap,
    SYS_munmap,      SYS_mprotect,        SYS_brk,
    SYS_clone,       SYS_clone3,          SYS_rseq,
    SYS_madvise,     SYS_set_robust_list, SYS_rt_sigprocmask,
    SYS_sched_yield, SYS_getrandom,       SYS_wait4,
    SYS_newfstatat,  SYS_rt_sigreturn,    SYS_fstat,
};
enum { ALLOWED = sizeof allowed / sizeof *allowed };
/* MADV_DONTNEED, MADV_GUARD_INSTALL, MADV_GUARD_REMOVE */
static const unsigned advices[] = {4, 102, 103};
enum { ADVICES = sizeof advices / sizeof *advices };

#define LOAD(field)         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define SAY(verdict)        BPF_STMT(BPF_RET | BPF_K, verdict)

/* glibc returns the stacks of ended threads with MADV_DONTNEED. From version 2.42 on it makes the
 * guard pages of stacks by an advice, and takes them away so. glibc uses no other advice. */
static struct sock_fprog make_filter(void)
{
    static struct sock_filter code[3 * ALLOWED + 2 * ADVICES + 16];
    unsigned short n = 0;
    code[n++] = (struct sock_filter)LOAD(nr);
    code[n++] = (struct sock_filter)UNLESS(SYS_madvise, 2 + 2 * ADVICES);
    code[n++] = (struct sock_filter)LOAD(args[2]);
    for (int i = 0; i < ADVICES; i++) {
        code[n++] = (struct sock_filter)UNLESS(advices[i], 1);
        code[n++] = (struct sock_filter)SAY(SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)SAY(SECCOMP_RET_KILL_PROCESS);
    for (int i = 0; i < ALLOWED; i++) {
        code[n++] = (struct sock_filter)UNLESS((unsigned)allowed[i], 1);
        code[n++] = (struct sock_filter)SAY(SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)SAY(SECCOMP_RET_KILL_PROCESS);
    return (struct sock_fprog){n, code};
}

static int confine(const char *how)
{
    struct sock_fprog filter = make_filter();
    int error = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (error != 0)
        return error;
    if (!strcmp(how, "prctl"))
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    if (!strcmp(how, "raw"))
        return (int)syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0L, 0L);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0L, &filter);
}

static void *fights(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&guard);
        sum++;
        if (i % 100 == 0)
            sched_yield();
        pthread_mutex_unlock(&guard);
    }
    sem_post(&posts);
    return argument;
}

static int lock_all(void)
{
    int wrong = 0;
    for (int i = 0; i < LOCKS; i++)
        wrong |= pthread_mutex_lock(&table[i]) | pthread_mutex_unlock(&table[i]);
    return wrong;
}

static void live(void)
{
    for (int time = 0; time < TIMES; time++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            threads[i] = start(fights, NULL, NULL);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    check_equal("locks", lock_all(), 0);
    check_equal("sum", sum, (long)TIMES * THREADS * ROUNDS);
}

static void fork_one(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        sum = 0;
        live();
        _exit(failures != 0);
    }
    check_equal("waitpid", waitpid(child, &status, 0), child);
    check_equal("child", status, 0);
}

static void live_strictly(void)
{
    int bad = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    for (int i = 0; i < ROUNDS; i++)
        bad |= pthread_mutex_lock(&g_confined) | pthread_mutex_unlock(&g_confined);
    bad |= lock_all();
    say(bad ? "failed" : "ok");
    syscall(SYS_exit, bad); /* the filter does not permit exit_group */
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "prctl";
    sem_init(&posts, 0, 0);
    pthread_join(start(fights, NULL, NULL), NULL);
    sum = 0;
    if (!strcmp(how, "strict"))
        live_strictly();
    if (!strcmp(how, "refused")) {
        check_equal("refused", (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0L, NULL), -1);
        check_equal("as well", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL), -1);
        live();
        return verdict_and_stay();
    }
    check_equal("the filter", confine(how), 0);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&g_confined);
        pthread_mutex_unlock(&g_confined);
    }
    live();
    fork_one();
    return verdict_and_stay();
}
