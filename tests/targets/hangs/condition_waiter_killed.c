/* A process that waited for a condition in shared memory was killed. A later broadcast waits for it
 * for ever, and keeps the mutex. A second thread waits for the mutex. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../target.h"

struct region {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    long generation, waiting;
};
static struct region *g_region;

static KEPT void await_change(void)
{
    pthread_mutex_lock(&g_region->lock);
    long generation = g_region->generation;
    g_region->waiting++;
    while (g_region->generation == generation)
        pthread_cond_wait(&g_region->changed, &g_region->lock);
    pthread_mutex_unlock(&g_region->lock);
}

static KEPT void publish(void)
{
    pthread_mutex_lock(&g_region->lock);
    g_region->generation++;
    pthread_cond_broadcast(&g_region->changed);
    pthread_mutex_unlock(&g_region->lock);
}

static void *watcher(void *unused)
{
    for (;;)
        await_change();
    return unused;
}

static void await_waiters(long count)
{
    for (long waiting = 0; waiting < count; pause_ms(1)) {
        pthread_mutex_lock(&g_region->lock);
        waiting = g_region->waiting;
        pthread_mutex_unlock(&g_region->lock);
    }
}

int main(void)
{
    g_region = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t of_mutex;
    pthread_mutexattr_init(&of_mutex);
    pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&g_region->lock, &of_mutex);
    pthread_condattr_t of_cond;
    pthread_condattr_init(&of_cond);
    pthread_condattr_setpshared(&of_cond, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&g_region->changed, &of_cond);
    for (long number = 1; number <= 2; number++) {
        pid_t child = fork();
        if (child == 0) {
            await_change();
            _exit(0);
        }
        await_waiters(number);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    start(watcher, NULL, "watcher");
    say("ready");
    for (;;) {
        pause_ms(20);
        publish();
    }
}
