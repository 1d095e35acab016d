/* A thread of another process, "convert", holds a mutex in shared memory, and lives. Two threads of
 * this process wait for the mutex. The argument says which thread holds it, or what is wrong:
 *
 *   main      the first thread of that process
 *   worker    another thread of that process
 *   crossed   the first thread, which waits for a mutex of this process: a deadlock
 *   unmapped  the first thread, and that process has no longer mapped the memory
 *   private   no thread: the word of a mutex in private memory names the first thread
 *
 * The program says the pid of that process and the tid of the thread. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../target.h"

struct registry {
    pthread_mutex_t lock, other;
    int sessions;
};
static struct registry *g_registry;
static int to_parent[2], to_child[2];

static KEPT void edit_config(int is_unmapped, int is_crossed)
{
    int tid = own_tid();
    char c;
    pthread_mutex_lock(&g_registry->lock);
    if (is_unmapped)
        munmap(g_registry, 4096);
    if (write(to_parent[1], &tid, sizeof tid) != sizeof tid)
        _exit(3);
    if (is_crossed)
        pthread_mutex_lock(&g_registry->other); /* for good */
    if (read(to_child[0], &c, 1))
        _exit(3);
    _exit(0); /* the end of the pipe: the parent has ended */
}

static void *worker(void *unused)
{
    edit_config(0, 0);
    return unused;
}

static void be_child(const char *how)
{
    close(to_child[1]);
    pthread_setname_np(pthread_self(), "convert");
    if (!strcmp(how, "worker"))
        pthread_join(start(worker, NULL, "worker"), NULL);
    else
        edit_config(!strcmp(how, "unmapped"), !strcmp(how, "crossed"));
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

static struct registry *map(int flags)
{
    struct registry *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t shared;
    must(made == MAP_FAILED ? errno : 0, "mmap");
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&made->lock, &shared);
    pthread_mutex_init(&made->other, &shared);
    return made;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "main";
    int tid;
    char text[100];
    g_registry = map(MAP_SHARED);
    must(pipe(to_parent) || pipe(to_child) ? errno : 0, "pipe");
    if (!strcmp(how, "crossed"))
        pthread_mutex_lock(&g_registry->other);
    pid_t child = fork();
    if (child == 0) {
        if (!strcmp(how, "crossed"))
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* no end of a pipe ends its wait */
        be_child(how);
    }
    if (read(to_parent[0], &tid, sizeof tid) != sizeof tid)
        return 3;
    if (!strcmp(how, "private")) {
        g_registry = map(MAP_PRIVATE);
        pthread_mutex_lock(&g_registry->lock);
        g_registry->lock.__data.__owner = tid;
    }
    snprintf(text, sizeof text, "{\"process\": %d, \"holder\": %d}", child, tid);
    start(session, NULL, "session");
    say(text);
    open_session();
    return 0;
}
