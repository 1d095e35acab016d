/* Children of a process with threads: `fork_vfork_spawn_exec HOW`.
 *
 *   fork      while the other threads hold, wait and sleep; the child locks, waits, makes threads,
 *             and forks again; fork handlers take and release the locks, as many libraries do
 *   handlers  fork handlers that initialise the locks again in the child instead
 *   busy      many forks from all threads at once
 *   vfork     the child locks, posts, and ends by _exit
 *   vexec     the child fails to execute a program, then executes one
 *   spawn     posix_spawn, of a program that exists and of one that does not
 *   exec      a thread that is not the first executes this program
 *   noexec    the same with a program that does not exist: the process continues
 */
#include <sched.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "../target.h"

enum { FORKS = 30, BUSY_FORKS = 15, BUSY = 3, ROUNDS = 50, YIELD_EVERY = 10, STATUS = 7 };

extern char **environ;

static pthread_mutex_t of_handlers = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t next_of_handlers = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t held_for_ever = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t held_by_forker = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t posted, never;
static atomic_bool over;

static void take_all(void)
{
    pthread_mutex_lock(&of_handlers);
    pthread_mutex_lock(&next_of_handlers);
}

static void give_all(void)
{
    pthread_mutex_unlock(&next_of_handlers);
    pthread_mutex_unlock(&of_handlers);
}

static void make_anew(void)
{
    pthread_mutex_init(&of_handlers, NULL);
    pthread_mutex_init(&next_of_handlers, NULL);
    pthread_mutex_lock(&of_handlers);
    pthread_mutex_unlock(&of_handlers);
}

static void *fights(void *argument)
{
    while (!over) {
        pthread_mutex_lock(&of_handlers);
        sched_yield();
        pthread_mutex_unlock(&of_handlers);
        pthread_mutex_lock(&next_of_handlers);
        pthread_mutex_unlock(&next_of_handlers);
    }
    return argument;
}

static void *holds(void *argument)
{
    pthread_mutex_lock(&held_for_ever);
    sem_post(argument);
    sem_wait(&never);
    pthread_mutex_unlock(&held_for_ever);
    return argument;
}

static void *wants(void *argument)
{
    pthread_mutex_lock(&held_for_ever);
    pthread_mutex_unlock(&held_for_ever);
    return argument;
}

/* Yields now and then, so that the threads meet the held lock. On a busy machine a yield may take
 * 20 ms. */
static void *in_child(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&fresh);
        if (i % YIELD_EVERY == 0)
            sched_yield();
        pthread_mutex_unlock(&fresh);
    }
    sem_post(&posted);
    return argument;
}

static int status_of(pid_t child)
{
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

static int as_child(int generations)
{
    struct timespec past = {0, 0};
    check_equal("unlock what the forker held", pthread_mutex_unlock(&held_by_forker), 0);
    check_equal("what another thread holds", pthread_mutex_trylock(&held_for_ever), EBUSY);
    check_equal("lock of the handlers", pthread_mutex_lock(&of_handlers), 0);
    check_equal("timedwait", pthread_cond_timedwait(&cond, &of_handlers, &past), ETIMEDOUT);
    check_equal("unlock of the handlers", pthread_mutex_unlock(&of_handlers), 0);
    pthread_t thread = start(in_child, NULL, NULL);
    in_child(NULL);
    check_equal("join", pthread_join(thread, NULL), 0);
    check_equal("posts", sem_trywait(&posted) || sem_trywait(&posted), 0);
    if (generations > 1) {
        check_equal("lock for a grandchild", pthread_mutex_lock(&held_by_forker), 0);
        pid_t child = fork();
        if (child == 0)
            _exit(as_child(generations - 1));
        check_equal("grandchild", status_of(child), 0);
    }
    return failures != 0;
}

static void forks(void)
{
    pthread_t threads[] = {start(fights, NULL, NULL), start(holds, &posted, NULL), 0};
    sem_wait(&posted);
    threads[2] = start(wants, NULL, NULL);
    for (int i = 0; i < FORKS; i++) {
        pthread_mutex_lock(&held_by_forker);
        pid_t child = fork();
        if (child == 0)
            _exit(as_child(2));
        check_equal("unlock", pthread_mutex_unlock(&held_by_forker), 0);
        check_equal("child", status_of(child), 0);
    }
    over = true;
    sem_post(&never);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        pthread_join(threads[i], NULL);
}

static int lock_all_times(int times)
{
    int wrong = 0;
    for (int i = 0; i < times; i++) {
        wrong |= pthread_mutex_lock(&of_handlers) | pthread_mutex_lock(&next_of_handlers);
        wrong |= pthread_mutex_unlock(&next_of_handlers) | pthread_mutex_unlock(&of_handlers);
    }
    return wrong;
}

static void *forks_too(void *argument)
{
    for (int i = 0; i < BUSY_FORKS; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(lock_all_times(ROUNDS));
        check_equal("child", status_of(child), 0);
        check_equal("locks", lock_all_times(ROUNDS), 0);
    }
    return argument;
}

static void forks_at_once(void)
{
    pthread_t threads[BUSY];
    for (int i = 0; i < BUSY; i++)
        threads[i] = start(forks_too, NULL, NULL);
    for (int i = 0; i < BUSY; i++)
        pthread_join(threads[i], NULL);
}

static void vforks(void)
{
    static volatile int locked;
    pthread_t thread = start(fights, NULL, NULL);
    for (int i = 0; i < FORKS; i++) {
        pthread_mutex_lock(&held_by_forker);
        pid_t child = vfork();
        if (child == 0) { /* shares all memory; POSIX forbids the following, but programs do it */
            locked = pthread_mutex_lock(&fresh);
            sem_post(&posted);
            pthread_mutex_unlock(&fresh);
            _exit(STATUS);
        }
        check_equal("locked", locked, 0);
        check_equal("unlock", pthread_mutex_unlock(&held_by_forker), 0);
        check_equal("child", status_of(child), STATUS);
        check_equal("post", sem_trywait(&posted), 0);
    }
    over = true;
    pthread_join(thread, NULL);
}

static void vforks_and_executes(void)
{
    char *const command[] = {(char *)"sh", (char *)"-c", (char *)"exit 7", NULL};
    pthread_t thread = start(fights, NULL, NULL);
    for (int i = 0; i < FORKS / 3; i++) {
        pid_t child = vfork();
        if (child == 0) {
            execv("/no/such/program", command);
            execv("/bin/sh", command);
            _exit(127);
        }
        check_equal("program", status_of(child), STATUS);
        child = vfork();
        if (child == 0) {
            execv("/no/such/program", command);
            _exit(127);
        }
        check_equal("no program", status_of(child), 127);
    }
    over = true;
    pthread_join(thread, NULL);
}

static void *spawns(void *argument)
{
    char *const command[] = {(char *)"sh", (char *)"-c", (char *)"exit 7", NULL};
    pid_t child;
    check_equal("spawn", posix_spawn(&child, "/bin/sh", NULL, NULL, command, environ), 0);
    check_equal("spawned", status_of(child), STATUS);
    check_equal("spawn of nothing",
                posix_spawn(&child, "/no/such/program", NULL, NULL, command, environ), ENOENT);
    check_equal("spawnp", posix_spawnp(&child, "sh", NULL, NULL, command, environ), 0);
    check_equal("spawned", status_of(child), STATUS);
    return argument;
}

static void spawn_at_once(void)
{
    pthread_t thread = start(fights, NULL, NULL);
    pthread_t threads[] = {start(spawns, NULL, NULL), start(spawns, NULL, NULL)};
    spawns(NULL);
    over = true;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_join(thread, NULL);
}

static void *executes(void *program)
{
    char *const command[] = {(char *)"forks", (char *)"executed", NULL};
    pthread_mutex_lock(&fresh);
    execv(program, command);
    check_equal("execv", errno, ENOENT);
    pthread_mutex_unlock(&fresh);
    return NULL;
}

static void executes_in_thread(const char *program)
{
    pthread_t thread = start(fights, NULL, NULL);
    pthread_join(start(executes, (void *)program, NULL), NULL);
    over = true;
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "fork";
    sem_init(&posted, 0, 0);
    sem_init(&never, 0, 0);
    if (!strcmp(how, "fork") || !strcmp(how, "busy"))
        pthread_atfork(take_all, give_all, give_all);
    if (!strcmp(how, "handlers"))
        pthread_atfork(NULL, NULL, make_anew);
    if (!strcmp(how, "fork") || !strcmp(how, "handlers"))
        forks();
    else if (!strcmp(how, "busy"))
        forks_at_once();
    else if (!strcmp(how, "vfork"))
        vforks();
    else if (!strcmp(how, "vexec"))
        vforks_and_executes();
    else if (!strcmp(how, "spawn"))
        spawn_at_once();
    else if (!strcmp(how, "exec"))
        executes_in_thread("/proc/self/exe");
    else if (!strcmp(how, "noexec"))
        executes_in_thread("/no/such/program");
    return verdict_and_stay();
}
