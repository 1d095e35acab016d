/* A process that held a mutex in shared memory was killed. The mutex is not robust, so two threads
 * of another process wait for it for ever. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../target.h"

struct registry {
    pthread_mutex_t lock;
    int sessions, is_held;
};
static struct registry *g_registry;

static KEPT void edit_config(void)
{
    pthread_mutex_lock(&g_registry->lock);
    __atomic_store_n(&g_registry->is_held, 1, __ATOMIC_RELEASE);
    pause();
}

static KEPT void open_session(void)
{
    pthread_mutex_lock(&g_registry->lock);
    g_registry->sessions++;
    pthread_mutex_unlock(&g_registry->lock);
}

static void *session(void *unused)
{
    open_session();
    return unused;
}

int main(void)
{
    g_registry = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&g_registry->lock, &shared);
    pid_t child = fork();
    if (child == 0) {
        edit_config();
        _exit(0);
    }
    while (!__atomic_load_n(&g_registry->is_held, __ATOMIC_ACQUIRE))
        pause_ms(1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    start(session, NULL, "session");
    say("ready");
    open_session();
    return 0;
}
