/* A signal handler forks while the interrupted thread is at a lock, again and again, and the child
 * goes on where it was interrupted. Each child must end well, and so must the parent.
 */
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "target.h"

enum { FORKS = 100, MOST_LOCKS = 4000000 };
static volatile sig_atomic_t forks, in_child, bad;

static void handler(int signal)
{
    int saved = errno, status = 0;
    (void)signal;
    pid_t child = fork();
    if (child == 0) {
        in_child = 1;
        return;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    forks = forks + 1;
    bad = bad + (status != 0);
    errno = saved;
}

int main(void)
{
    pthread_mutex_t *table = calloc(MOST_LOCKS, sizeof *table);
    struct itimerval timer = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; table && i < MOST_LOCKS && forks < FORKS; i++) {
        pthread_mutex_lock(&table[i]);
        pthread_mutex_unlock(&table[i]);
        if (in_child)
            _exit(0);
    }
    setitimer(ITIMER_REAL, &off, NULL);
    if (in_child) /* made after the last look */
        _exit(0);
    check_equal("children that ended badly", bad, 0);
    return verdict();
}
