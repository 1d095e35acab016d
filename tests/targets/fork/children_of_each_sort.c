/* Three child processes, one after the other: one of fork(), one of _Fork(), and one that executes
 * this program. Each child says its sort if errno is unchanged.
 */
#include <spawn.h>
#include <sys/wait.h>

#include "../target.h"

enum { ERRNO = 4711 };

extern char **environ;

static void await(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) != child || status)
        say("a child failed");
}

static void beget(pid_t (*make)(void))
{
    errno = ERRNO;
    pid_t child = make();
    if (child == 0) {
        say(errno == ERRNO ? "forked" : "forked, with another errno");
        _exit(0);
    }
    await(child);
}

int main(int argc, char **argv)
{
    char *arguments[] = {argv[0], "executed", NULL};
    pid_t child;
    say(argc > 1 ? argv[1] : "begun");
    if (argc > 1)
        return 0;
    beget(fork);
    beget(_Fork);
    must(posix_spawn(&child, argv[0], NULL, NULL, arguments, environ), "posix_spawn");
    await(child);
    return 0;
}
