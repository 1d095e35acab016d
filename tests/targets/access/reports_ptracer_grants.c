/* Runs a program, and reports each prctl(PR_SET_PTRACER) of the program and of all its children. A
 * report names the process that may trace the caller: "any" or a pid.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "../target.h"

enum {
    OPTIONS = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
              PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL
};

/* Trace that call only, so that the other calls stay fast. */
static void be_watched(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PTRACER, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) || raise(SIGSTOP) ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        must(errno, "cannot be watched");
}

static void report(pid_t pid)
{
    struct __ptrace_syscall_info info = {0};
    char line[40] = "any";
    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) < 0)
        must(errno, "PTRACE_GET_SYSCALL_INFO");
    if (info.seccomp.args[1] != (uint64_t)PR_SET_PTRACER_ANY)
        snprintf(line, sizeof line, "%llu", (unsigned long long)info.seccomp.args[1]);
    say(line);
}

int main(int argc, char **argv)
{
    int status;
    pid_t first = fork(), pid;
    if (first == 0 && argc > 1) {
        be_watched();
        execvp(argv[1], argv + 1);
        must(errno, argv[1]);
    }
    waitpid(first, &status, 0);
    if (ptrace(PTRACE_SETOPTIONS, first, 0, OPTIONS) || ptrace(PTRACE_CONT, first, 0, 0))
        must(errno, "ptrace");
    while ((pid = waitpid(-1, &status, __WALL)) > 0) {
        int signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
        if (!signal)
            continue;
        if (status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8))
            report(pid);
        ptrace(PTRACE_CONT, pid, 0, signal == SIGTRAP || signal == SIGSTOP ? 0 : signal);
    }
    return 0;
}
