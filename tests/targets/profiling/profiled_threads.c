/* Profiles its threads: those that are there, those that begin, and those that end. Then forks and
 * executes itself while a profile runs. The first argument chooses the part.
 */
#include <signal.h>
#include <sys/wait.h>

#include "profiled_work.h"

DEFINE_WORK(main_work)
DEFINE_WORK(thread_work)

enum { WORK_MS = 400, SHORT_THREADS = 40, SHORT_MS = 20 };

static pthread_barrier_t meeting;
static size_t main_size, thread_size;

/* A profile of both functions; the buckets of main_work() come first. */
static int both(int source, int scope)
{
    const void *start;
    int profile =
        profile_must(locktop_profile_create(ADDRESS_OF(main_work), LOCKTOP_WHOLE_FUNCTION, 4,
                                            source, 0, scope, scope ? "all threads" : "this"));
    profile_must(locktop_profile_add(profile, ADDRESS_OF(thread_work), LOCKTOP_WHOLE_FUNCTION));
    locktop_profile_find("main_work", &start, &main_size);
    locktop_profile_find("thread_work", &start, &thread_size);
    return profile;
}

static uint64_t in_main, in_thread;

static struct locktop_profile_totals split(int profile)
{
    struct locktop_profile_totals totals;
    uint64_t first = (main_size + 3) / 4;
    in_main = read_counts(profile, &totals, 0, first);
    in_thread = read_counts(profile, &totals, first, totals.buckets);
    return totals;
}

static void print(const char *name, int profile)
{
    struct locktop_profile_totals totals = split(profile);
    printf("\"%s\": {\"main\": %llu, \"thread\": %llu, \"samples\": %llu, \"lost\": %llu, "
           "\"interval\": %llu, \"threads\": %llu, \"left_out\": %llu}",
           name, (unsigned long long)in_main, (unsigned long long)in_thread,
           (unsigned long long)totals.samples, (unsigned long long)totals.lost,
           (unsigned long long)totals.interval, (unsigned long long)totals.threads,
           (unsigned long long)totals.left_out);
}

/* Is there before the profiles start, and works when they run. */
static void *early(void *unused)
{
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    thread_work(WORK_MS);
    return unused;
}

static void *late(void *ms)
{
    thread_work((unsigned)(uintptr_t)ms);
    return NULL;
}

static void *masked(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    thread_work(WORK_MS);
    return unused;
}

static void run_threads(int source)
{
    pthread_t threads[3];
    pthread_barrier_init(&meeting, NULL, 2);
    threads[0] = start(early, NULL, "early");
    pthread_barrier_wait(&meeting);
    int all = both(source, LOCKTOP_ALL_THREADS), own = both(source, LOCKTOP_THIS_THREAD);
    profile_must(locktop_profile_start(all));
    profile_must(locktop_profile_start(own));
    pthread_barrier_wait(&meeting);
    threads[1] = start(late, (void *)(uintptr_t)WORK_MS, "late");
    main_work(WORK_MS);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    for (int i = 0; i < SHORT_THREADS; i++) {
        threads[2] = start(late, (void *)(uintptr_t)SHORT_MS, NULL);
        pthread_join(threads[2], NULL);
    }
    printf("{");
    print("all", all);
    printf(", ");
    print("own", own);
    printf("}\n");
    fflush(stdout);
    hear();
    profile_must(locktop_profile_stop(all));
    profile_must(locktop_profile_stop(own));
    check_equal("threads", (long)split(all).threads, 0);
}

/* A thread that blocks all signals might fetch the signal itself. */
static void run_masked(void)
{
    pthread_barrier_init(&meeting, NULL, 2);
    pthread_t thread = start(masked, NULL, "masked");
    pthread_barrier_wait(&meeting);
    int profile = both(LOCKTOP_TIMER, LOCKTOP_ALL_THREADS);
    profile_must(locktop_profile_start(profile));
    pthread_barrier_wait(&meeting);
    pthread_join(thread, NULL);
    struct locktop_profile_totals totals = split(profile);
    check_equal("left out", (long)totals.left_out, 1);
    check_equal("samples", (long)in_thread, 0);
    locktop_profile_stop(profile);
}

/* In the child: no profile runs, and the counts of the parent are not its own. */
static int child(int profile)
{
    struct locktop_profile_totals totals = split(profile);
    check_equal("child: samples", (long)(totals.samples + totals.elsewhere), 0);
    check_equal("child: stop", locktop_profile_stop(profile), LOCKTOP_NOT_RUNNING);
    main_work(100);
    check_equal("child: no sample", (long)split(profile).samples, 0);
    check_equal("child: start", locktop_profile_start(profile), 0);
    thread_work(200);
    check_equal("child: own samples", split(profile).samples > 0 && in_thread > 0, 1);
    check_equal("child: of its parent's", (long)in_main, 0);
    int mine = both(LOCKTOP_TIMER, LOCKTOP_ALL_THREADS);
    check_equal("child: destroy", locktop_profile_destroy(mine), 0);
    check_equal("child: destroy", locktop_profile_destroy(profile), 0);
    return failures;
}

static void run_fork(int source)
{
    int profile = both(source, LOCKTOP_ALL_THREADS), status;
    profile_must(locktop_profile_start(profile));
    main_work(WORK_MS);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int wrong = child(profile);
        fflush(stdout);
        _exit(wrong);
    }
    waitpid(pid, &status, 0);
    check_equal("status", status, 0);
    uint64_t before = split(profile).samples;
    check_equal("no sample of the child", (long)in_thread, 0);
    main_work(WORK_MS);
    check_equal("the parent goes on", split(profile).samples > before, 1);
    check_equal("stop", locktop_profile_stop(profile), 0);
}

static void run_exec(char *self)
{
    profile_must(locktop_profile_start(both(LOCKTOP_TIMER, LOCKTOP_ALL_THREADS)));
    profile_must(locktop_profile_start(both(LOCKTOP_TIMER, LOCKTOP_THIS_THREAD)));
    main_work(100);
    execl(self, self, "executed", NULL);
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "threads";
    int source = argc > 2 ? atoi(argv[2]) : LOCKTOP_TIMER;
    if (!strcmp(part, "threads"))
        run_threads(source);
    else if (!strcmp(part, "masked"))
        run_masked();
    else if (!strcmp(part, "fork"))
        run_fork(source);
    else if (!strcmp(part, "exec"))
        run_exec(argv[0]);
    else
        main_work(300); /* executed: no signal of the program before may come */
    return verdict();
}
