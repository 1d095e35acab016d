/* A forked child waits for a semaphore that a thread of the parent has. The library then reads the
 * file of the parent. A filter traps each pread64 of the child.
 *
 *   watch    each call is made as it is
 *   closed   at the first call another part of the program closes all descriptors from 3 on, and
 *            opens files
 *
 * The child prints how often the library read, and the lowest descriptor of these calls. The child
 * also prints how many files of the program are still open, and how many descriptors are left over.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <ucontext.h>

#include "../target.h"

enum { USES = 100, FILES = 8, DESCRIPTORS = 4096, TICK_US = 20000 };

static sem_t semaphore, is_held;
static int closes, files[FILES];
static volatile int reads, lowest = DESCRIPTORS;

#if defined(__x86_64__)
#define ARGUMENT(context, n)                                                                       \
    ((context)->uc_mcontext.gregs[(int[]){REG_RDI, REG_RSI, REG_RDX, REG_R10}[n]])
#define RESULT(context) ((context)->uc_mcontext.gregs[REG_RAX])

/* The library watches the calls of libc's functions, and stops all such work in a sandbox. */
static long without_libc(long number, long a, long b, long c)
{
    register long d __asm__("r10") = 0;
    register long e __asm__("r8") = 0;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d), "r"(e)
                     : "rcx", "r11", "memory");
    return result;
}
#else
#define ARGUMENT(context, n) ((context)->uc_mcontext.regs[n])
#define RESULT(context)      ((context)->uc_mcontext.regs[0])

static long without_libc(long number, long a, long b, long c)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
}
#endif

static void close_and_open(void)
{
    for (int fd = 3; fd < DESCRIPTORS; fd++)
        close(fd);
    for (int i = 0; i < FILES; i++)
        files[i] = open("/dev/null", O_RDONLY);
}

static void trapped(int number, siginfo_t *info, void *pointer)
{
    ucontext_t *context = pointer;
    int fd = (int)ARGUMENT(context, 0);
    struct iovec to = {(void *)ARGUMENT(context, 1), (size_t)ARGUMENT(context, 2)};
    (void)number;
    (void)info;
    if (fd < lowest)
        lowest = fd;
    if (reads++ == 0 && closes)
        close_and_open();
    ssize_t got = preadv(fd, &to, 1, (off_t)ARGUMENT(context, 3));
    RESULT(context) = got < 0 ? -errno : got;
}

static void trap_reads(void)
{
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    static struct sock_fprog filter = {sizeof code / sizeof *code, code};
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    must(sigaction(SIGSYS, &action, NULL) ? errno : 0, "sigaction");
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? errno : 0, "prctl");
    must((int)-without_libc(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&filter),
         "seccomp");
}

static void tick(int number)
{
    (void)number;
}

static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 3; fd < DESCRIPTORS; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void in_child(void)
{
    struct sigaction action = {.sa_handler = tick};
    struct itimerval time = {{0, TICK_US}, {0, TICK_US}};
    char line[128];
    int before = open_descriptors(), intact = 0;

    trap_reads();
    must(sigaction(SIGALRM, &action, NULL) ? errno : 0, "sigaction");
    must(setitimer(ITIMER_REAL, &time, NULL) ? errno : 0, "setitimer");
    sem_wait(&semaphore); /* no thread of this process posts it; a tick ends the wait */
    for (int i = 0; i < FILES; i++)
        intact += files[i] && fcntl(files[i], F_GETFD) >= 0;
    snprintf(line, sizeof line, "{\"reads\": %d, \"lowest\": %d, \"intact\": %d, \"left\": %d}",
             reads, lowest, intact, open_descriptors() - (closes ? intact : before));
    say(line);
    hear();
    _exit(0);
}

static void *hold(void *unused)
{
    for (int i = 0; i < USES; i++) {
        sem_wait(&semaphore);
        sem_post(&semaphore);
    }
    sem_wait(&semaphore);
    sem_post(&is_held);
    for (;;)
        pause();
    return unused;
}

int main(int argc, char **argv)
{
    closes = argc > 1 && strcmp(argv[1], "closed") == 0;
    sem_init(&semaphore, 0, 1);
    sem_init(&is_held, 0, 0);
    start(hold, NULL, "holder");
    sem_wait(&is_held);
    int parent = getpid();
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(3);
        in_child();
    }
    for (;;)
        pause();
}
