/* A signal handler forks while the interrupted thread is in a lock operation, again and again. The
 * child continues where the handler interrupted the thread. Each child must end well, and so must
 * the parent.
 */
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "../target.h"

enum { FORKS = 100, MAX_LOCKS = 4000000 };
static volatile sig_atomic_t forks, in_child, bad;
/* Each handler sets the timer again at its end. A fork may take longer than a period, and then a
 * periodic timer would interrupt one instruction for ever. */
static const struct itimerval once = {{0, 0}, {0, 1000}}, off;

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
    if (forks < FORKS)
        setitimer(ITIMER_REAL, &once, NULL);
    errno = saved;
}

int main(void)
{
    pthread_mutex_t *table = calloc(MAX_LOCKS, sizeof *table);
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &once, NULL);
    for (int i = 0; table && i < MAX_LOCKS && forks < FORKS; i++) {
        pthread_mutex_lock(&table[i]);
        pthread_mutex_unlock(&table[i]);
        if (in_child)
            _exit(0);
    }
    setitimer(ITIMER_REAL, &off, NULL);
    if (in_child) /* created after the last scan */
        _exit(0);
    check_equal("children that ended badly", bad, 0);
    return verdict();
}
