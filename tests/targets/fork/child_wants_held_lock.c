/* Forks while another thread holds a lock: the child requests the lock and waits for good. The
 * parent says both pids and the holder's tid. `child_wants_held_lock handlers`: correct fork
 * handlers take the lock before the fork and release the lock after the fork in both processes.
 * Then the child gets the lock and says so.
 */
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>

#include "../target.h"

pthread_mutex_t g_kept = PTHREAD_MUTEX_INITIALIZER;
static sem_t is_held, may_go;
static int holder_tid, line_written[2]; /* the parent has written its line */

static void *hold(void *unused)
{
    holder_tid = own_tid();
    pthread_mutex_lock(&g_kept);
    sem_post(&is_held);
    sem_wait(&may_go);
    pthread_mutex_unlock(&g_kept);
    return unused;
}

static void prepare(void)
{
    sem_post(&may_go);
    pthread_mutex_lock(&g_kept);
}

static void after(void)
{
    pthread_mutex_unlock(&g_kept);
}

static KEPT void ask_in_child(void)
{
    pthread_mutex_lock(&g_kept);
    pthread_mutex_unlock(&g_kept);
}

int main(int argc, char **argv)
{
    char line[128];
    sem_init(&is_held, 0, 0);
    sem_init(&may_go, 0, 0);
    if (argc > 1)
        pthread_atfork(prepare, after, after);
    (void)argv;
    must(pipe(line_written) ? errno : 0, "pipe");
    pthread_t holder = start(hold, NULL, "holder");
    sem_wait(&is_held);
    int parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(3);
        ask_in_child();
        if (read(line_written[0], line, 1) == 1)
            say("got it");
        hear();
        _exit(0);
    }
    snprintf(line, sizeof line, "{\"child\": %d, \"holder\": %d}", child, holder_tid);
    say(line);
    if (write(line_written[1], "!", 1) != 1)
        return 3;
    hear();
    kill(child, SIGKILL);
    sem_post(&may_go);
    pthread_join(holder, NULL);
    return 0;
}
