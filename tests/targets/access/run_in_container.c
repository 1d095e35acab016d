/* Runs a program as a container does: run_in_container SORT DIRECTORY [NAME=VALUE...] PROGRAM
 * [ARGUMENT...].
 *
 *   root    own pid and mount namespaces; DIRECTORY is the root, with /proc, and with /dev/shm if
 *           DIRECTORY has such a directory
 *   user    the same in an own user namespace, whose root is a user without rights outside
 *   pid     own pid and mount namespaces, and the root of the caller
 *   chroot  DIRECTORY is the root; no namespace
 *
 * Says the pid of the program in the namespace of the caller; all other lines are the program's.
 * The program ends with this process.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../target.h"

enum { NOBODY = 65534 };

static void must_do(int result, const char *what)
{
    must(result < 0 ? errno : 0, what);
}

static void put(const char *path, const char *text)
{
    int file = open(path, O_WRONLY);
    must_do(file, path);
    must_do(write(file, text, strlen(text)) < 0 ? -1 : 0, path);
    close(file);
}

static void become_root_inside(void)
{
    char line[40];
    must_do(setresgid(NOBODY, NOBODY, NOBODY), "setresgid");
    must_do(setresuid(NOBODY, NOBODY, NOBODY), "setresuid");
    must_do(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0),
            "PR_SET_DUMPABLE"); /* /proc/self is this process again */
    must_do(unshare(CLONE_NEWUSER), "a user namespace");
    put("/proc/self/setgroups", "deny");
    snprintf(line, sizeof line, "0 %d 1", NOBODY);
    put("/proc/self/uid_map", line);
    put("/proc/self/gid_map", line);
}

static void enter(const char *directory)
{
    must_do(mount(directory, directory, NULL, MS_BIND | MS_REC, NULL), "bind");
    must_do(chdir(directory), directory);
    must_do(mount("proc", "proc", "proc", 0, NULL), "mount proc");
    if (access("dev/shm", F_OK) == 0)
        must_do(mount("tmpfs", "dev/shm", "tmpfs", 0, "mode=1777"), "mount /dev/shm");
    must_do((int)syscall(SYS_pivot_root, ".", "."), "pivot_root");
    must_do(umount2(".", MNT_DETACH), "umount");
    must_do(chdir("/"), "/");
}

static void run(const char *sort, const char *directory, char **command)
{
    char c;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (!strcmp(sort, "chroot")) {
        must_do(chroot(directory), "chroot");
        must_do(chdir("/"), "/");
    } else {
        must_do(mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL), "mount /");
        if (!strcmp(sort, "pid"))
            must_do(mount("proc", "/proc", "proc", 0, NULL), "mount proc");
        else
            enter(directory);
    }
    must_do(read(3, &c, 1), "read"); /* the child writes its pid */
    close(3);
    while (strchr(*command, '='))
        putenv(*command++);
    execv(command[0], command);
    must(errno, command[0]);
}

int main(int argc, char **argv)
{
    int ends[2], status = 0;
    char line[20];
    if (argc < 4)
        return 2;
    if (!strcmp(argv[1], "user"))
        become_root_inside();
    if (strcmp(argv[1], "chroot") != 0)
        must_do(unshare(CLONE_NEWPID | CLONE_NEWNS), "namespaces");
    close(3);
    must_do(pipe(ends), "pipe");
    dup2(ends[0], 3);
    pid_t child = fork();
    if (child == 0)
        run(argv[1], argv[2], argv + 3);
    close(0);
    snprintf(line, sizeof line, "%d", child);
    say(line);
    must_do((int)write(ends[1], "", 1), "write");
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
