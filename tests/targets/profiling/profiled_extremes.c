/* Profiles where their functions must do no harm. The first argument chooses the part.
 *
 *   clone     a child of the bare system call uses the profiles of its parent
 *   handlers  signal handlers use the profiles that the interrupted threads use
 */
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "profiled_work.h"

DEFINE_WORK(work)

enum { THREADS = 3, SHARED = 4, CHILDREN = 20 };

static int create(int source, int scope)
{
    return profile_must(locktop_profile_create_function(work, 4, source, 0, scope, "extremes"));
}

static int use_in_clone(int running, int stopped)
{
    struct locktop_profile_totals totals;
    int profiles[] = {running, stopped};
    for (int i = 0; i < 2; i++) {
        check_equal("read", locktop_profile_read(profiles[i], counts, BUCKETS_MAX, &totals),
                    LOCKTOP_NOT_WATCHED);
        check_equal("start", locktop_profile_start(profiles[i]), LOCKTOP_NOT_WATCHED);
        check_equal("stop", locktop_profile_stop(profiles[i]), LOCKTOP_NOT_WATCHED);
        check_equal("destroy", locktop_profile_destroy(profiles[i]), LOCKTOP_NOT_WATCHED);
    }
    return failures;
}

static void *user(void *profile)
{
    static volatile int over;
    if (!profile)
        over = 1;
    while (!over) {
        locktop_profile_start((int)(intptr_t)profile);
        locktop_profile_stop((int)(intptr_t)profile);
    }
    return NULL;
}

/* Another thread has the lock of the profiles at times, when the child is made. */
static void in_clones(int source)
{
    int running = create(source, LOCKTOP_ALL_THREADS), stopped = create(source, 0);
    int busy = create(LOCKTOP_TIMER, 0);
    profile_must(locktop_profile_start(running));
    pthread_t thread = start(user, (void *)(intptr_t)busy, NULL);
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        work(5);
        pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0L);
        if (child == 0)
            syscall(SYS_exit_group, use_in_clone(running, stopped));
        check_equal("waitpid", waitpid(child, &status, 0), child);
        check_equal("status", status, 0);
    }
    user(NULL);
    pthread_join(thread, NULL);
    check_equal("stop", locktop_profile_stop(running), 0);
    struct locktop_profile_totals totals;
    uint64_t sum = read_counts(running, &totals, 0, BUCKETS_MAX);
    check_equal("sum", (long)sum, (long)totals.samples);
    check_equal("destroy", locktop_profile_destroy(running), 0);
}

static int shared[SHARED];
static volatile sig_atomic_t handled;

static void change(int slot, int step)
{
    struct locktop_profile_totals totals;
    int profile = shared[slot];
    switch (step % 6) {
    case 0:
    case 1: locktop_profile_start(profile); break;
    case 2: locktop_profile_read(profile, NULL, 0, &totals); break;
    case 3: locktop_profile_stop(profile); break;
    case 4: locktop_profile_destroy(profile); break;
    case 5:
        profile = locktop_profile_create_function(
            work, 4, step & 8 ? LOCKTOP_TASK_CLOCK : LOCKTOP_TIMER, 0, step >> 4 & 1, "shared");
        if (profile > 0 && shared[slot] != profile)
            locktop_profile_destroy(__atomic_exchange_n(&shared[slot], profile, __ATOMIC_SEQ_CST));
        break;
    }
}

static void on_signal(int number)
{
    int before = errno;
    (void)number;
    handled = handled + 1;
    change(handled % SHARED, handled);
    if (errno != before)
        failures++;
}

static void *changes(void *number)
{
    unsigned step = (unsigned)(uintptr_t)number * 7;
    while (handled < 3000) {
        step = step * 1103515245 + 12345;
        change((int)(step >> 8) % SHARED, (int)(step >> 12));
        work(1);
    }
    return NULL;
}

static void in_handlers(void)
{
    pthread_t threads[THREADS];
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    for (int i = 0; i < SHARED; i++)
        shared[i] = create(LOCKTOP_TIMER, i % 2);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(changes, (void *)(uintptr_t)i, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    for (int i = 1; i < 100000; i++)
        locktop_profile_destroy(i);
    check_equal("usable", create(LOCKTOP_TIMER, 1) > 0, 1);
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "clone";
    if (!strcmp(part, "clone"))
        in_clones(argc > 2 ? atoi(argv[2]) : LOCKTOP_TIMER);
    else
        in_handlers();
    return verdict();
}
