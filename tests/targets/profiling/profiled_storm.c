/* Threads make, start, read, stop and destroy profiles at the same time. Other threads come and go,
 * and children are forked. The sums must hold in each profile.
 */
#include <sys/wait.h>

#include "profiled_work.h"

DEFINE_WORK(work)

enum { THREADS = 4, FORKS = 5 };

static int rounds;
static volatile int over;

static void use_profile(unsigned number)
{
    static __thread uint64_t own[256];
    struct locktop_profile_totals totals;
    uint64_t sum = 0;
    int profile = locktop_profile_create_function(work, 4, number % 2 ? LOCKTOP_TASK_CLOCK : 0, 0,
                                                  (int)(number / 2 % 2), "storm");
    if (profile == LOCKTOP_NOT_PERMITTED || profile == LOCKTOP_NOT_ON_THIS_MACHINE)
        return;
    check_equal("create", profile > 0, 1);
    int started = locktop_profile_start(profile);
    check_equal("start", started == 0 || started == LOCKTOP_LIMIT, 1);
    work(5);
    check_equal("read", locktop_profile_read(profile, own, 256, &totals), 0);
    check_equal("stop", locktop_profile_stop(profile), started ? LOCKTOP_NOT_RUNNING : 0);
    check_equal("read", locktop_profile_read(profile, own, 256, &totals), 0);
    for (uint64_t i = 0; i < totals.buckets; i++)
        sum += own[i];
    check_equal("sum", (long)sum, (long)totals.samples);
    check_equal("threads", (long)totals.threads, 0);
    check_equal("destroy", locktop_profile_destroy(profile), 0);
    check_equal("destroy again", locktop_profile_destroy(profile), LOCKTOP_NO_PROFILE);
}

static void *user(void *number)
{
    for (unsigned i = 0; i < (unsigned)rounds; i++)
        use_profile(i + (unsigned)(uintptr_t)number);
    return NULL;
}

static void *brief(void *unused)
{
    work(1);
    return unused;
}

static void *comer(void *unused)
{
    while (!over)
        pthread_join(start(brief, NULL, NULL), NULL);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    rounds = argc > 1 ? atoi(argv[1]) : 50;
    pthread_t coming = start(comer, NULL, NULL);
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(user, (void *)(uintptr_t)i, NULL);
    for (int i = 0; i < FORKS; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            failures = 0;
            use_profile(0);
            use_profile(3);
            _exit(failures);
        }
        waitpid(pid, &status, 0);
        check_equal("status of a child", status, 0);
        work(20);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    over = 1;
    pthread_join(coming, NULL);
    return verdict();
}
