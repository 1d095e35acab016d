/* A process with several threads forks while the threads lock. The child starts a thread and
 * continues to lock. The forking thread held the child's lock during the fork, and the lock is
 * contended in the child only.
 *
 * Says {"parent": pid, "child": pid, ...} when the child has done its part. The end of stdin ends
 * both processes; a pipe tells the child.
 */
#include <stdatomic.h>
#include <sys/wait.h>

#include <sched.h>

#include "../target.h"

enum { ROUNDS = 20, SLEPT_ON = 2 /* glibc's mutex word while a thread sleeps on the mutex */ };

pthread_mutex_t g_parent_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_child_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t taken, all_done;
static atomic_int stop;

static void *busy(void *argument)
{
    do {
        pthread_mutex_lock(&g_parent_lock);
        pthread_mutex_unlock(&g_parent_lock);
    } while (!atomic_load(&stop)); /* the waiter may run only after that */
    return argument;
}

static KEPT void child_wants(void)
{
    pthread_mutex_lock(&g_child_lock);
    pthread_mutex_unlock(&g_child_lock);
}

static void *child_thread(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&taken);
        child_wants();
        pthread_barrier_wait(&all_done);
    }
    return argument;
}

static void child(int said, int parent_lives)
{
    pthread_mutex_unlock(&g_child_lock); /* held since before fork */
    pthread_barrier_init(&taken, NULL, 2);
    pthread_barrier_init(&all_done, NULL, 2);
    pthread_t thread = start(child_thread, NULL, "child-thread");
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&g_child_lock);
        pthread_barrier_wait(&taken);
        while (__atomic_load_n(&g_child_lock.__data.__lock, __ATOMIC_ACQUIRE) != SLEPT_ON)
            sched_yield();
        pthread_mutex_unlock(&g_child_lock);
        pthread_barrier_wait(&all_done);
    }
    pthread_join(thread, NULL);
    char c = '\n';
    if (write(said, &c, 1) == 1)
        while (read(parent_lives, &c, 1) > 0)
            continue;
    _exit(0);
}

int main(void)
{
    int said[2], parent_lives[2];
    must(pipe(said) || pipe(parent_lives) ? errno : 0, "pipe");
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        threads[i] = start(busy, NULL, NULL);
    pthread_mutex_lock(&g_child_lock);
    pid_t pid = fork();
    if (pid == 0) {
        close(parent_lives[1]);
        child(said[1], parent_lives[0]);
    }
    pthread_mutex_unlock(&g_child_lock);
    close(said[1]);
    char c;
    if (read(said[0], &c, 1) != 1)
        return 3;
    atomic_store(&stop, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    char text[200];
    snprintf(text, sizeof text,
             "{\"parent\": %d, \"child\": %d, \"child_contended\": %d, \"child_acquisitions\": %d}",
             (int)getpid(), (int)pid, ROUNDS, 2 * ROUNDS);
    say(text);
    hear();
    close(parent_lives[1]);
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}
