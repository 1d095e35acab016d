/* Profiles without a further timer, without descriptors, under a filter of system calls, and in a
 * crowd of threads. The first argument chooses the part.
 */
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "profiled_work.h"

DEFINE_WORK(work)

enum { CROWD = 1000 };

static pthread_barrier_t meeting;

/* The timer with its smallest interval. */
static int create(int source, int scope)
{
    struct locktop_profile_source_info info;
    profile_must(locktop_profile_source_info(source, &info));
    return profile_must(locktop_profile_create_function(
        work, 4, source, source == LOCKTOP_TIMER ? info.min_interval : 0, scope, "restricted"));
}

static struct locktop_profile_totals totals_of(int profile)
{
    struct locktop_profile_totals totals;
    check_equal("read", locktop_profile_read(profile, NULL, 0, &totals), 0);
    return totals;
}

/* The kernel counts timers among the pending signals of a user. */
static void no_timer(void)
{
    struct rlimit none = {0, 0};
    int one = create(LOCKTOP_TIMER, LOCKTOP_THIS_THREAD);
    int all = create(LOCKTOP_TIMER, LOCKTOP_ALL_THREADS);
    must(setrlimit(RLIMIT_SIGPENDING, &none) ? errno : 0, "setrlimit");
    check_equal("start", locktop_profile_start(one), LOCKTOP_LIMIT);
    check_equal("start", locktop_profile_start(all), LOCKTOP_LIMIT);
    check_equal("stop", locktop_profile_stop(all), LOCKTOP_NOT_RUNNING);
    check_equal("threads", (long)totals_of(all).threads, 0);
}

/* A daemon closes all descriptors, and opens files of its own at their numbers. */
static void closed_descriptors(int source)
{
    int profile = create(source, LOCKTOP_ALL_THREADS), files[64];
    profile_must(locktop_profile_start(profile));
    for (int i = 3; i < 64; i++)
        close(i);
    for (int i = 3; i < 64; i++)
        files[i] = open("/dev/zero", O_RDONLY);
    work(300);
    check_equal("samples", totals_of(profile).samples > 0, 1);
    check_equal("stop", locktop_profile_stop(profile), 0);
    uint64_t before = totals_of(profile).samples;
    work(50);
    check_equal("no further sample", (long)totals_of(profile).samples, (long)before);
    check_equal("start", locktop_profile_start(profile), 0);
    work(100);
    check_equal("samples", totals_of(profile).samples > before, 1);
    check_equal("destroy", locktop_profile_destroy(profile), 0);
    for (int i = 3; i < 64; i++)
        check_equal("a file of the program", close(files[i]), 0);
}

/* Any system call but those of this list ends the process. */
static void confine(void)
{
#define ALLOW(call)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(rt_sigreturn),
        ALLOW(write),
        ALLOW(read),
        ALLOW(exit_group),
        ALLOW(clock_gettime),
        ALLOW(newfstatat),
        ALLOW(fstat),
        ALLOW(brk),
        ALLOW(mmap),
        ALLOW(getrandom),
        BPF_STMT(BPF_RET, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? errno : 0, "no_new_privs");
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? errno : 0, "seccomp");
}

static void confined(int source)
{
    int profile = create(source, LOCKTOP_ALL_THREADS);
    int idle = create(LOCKTOP_TIMER, LOCKTOP_THIS_THREAD);
    profile_must(locktop_profile_start(profile));
    work(200);
    confine();
    work(200);
    uint64_t before = totals_of(profile).samples;
    check_equal("samples", before > 0, 1);
    check_equal("start", locktop_profile_start(idle), LOCKTOP_CONFINED);
    check_equal("create", locktop_profile_create_function(work, 4, LOCKTOP_TIMER, 0, 0, NULL),
                LOCKTOP_CONFINED);
    check_equal("stop", locktop_profile_stop(profile), 0);
    before = totals_of(profile).samples;
    work(100);
    check_equal("no further sample", (long)totals_of(profile).samples, (long)before);
    check_equal("destroy", locktop_profile_destroy(profile), 0);
}

static void *member(void *unused)
{
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    work(5);
    return unused;
}

/* The kernel bounds the memory of rings: threads without a ring are left out and counted. */
static void crowd(int source)
{
    static pthread_t threads[CROWD];
    pthread_barrier_init(&meeting, NULL, CROWD + 1);
    for (int i = 0; i < CROWD; i++)
        threads[i] = start(member, NULL, NULL);
    pthread_barrier_wait(&meeting);
    int profile = create(source, LOCKTOP_ALL_THREADS);
    check_equal("start", locktop_profile_start(profile), 0);
    struct locktop_profile_totals totals = totals_of(profile);
    check_equal("threads", (long)(totals.threads + totals.left_out), CROWD + 1);
    if (source == LOCKTOP_TIMER)
        check_equal("left out", (long)totals.left_out, 0);
    pthread_barrier_wait(&meeting);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    totals = totals_of(profile);
    check_equal("samples", totals.samples > 0, 1);
    check_equal("threads", (long)totals.threads, 1);
    check_equal("stop", locktop_profile_stop(profile), 0);
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "timer";
    int source = argc > 2 ? atoi(argv[2]) : LOCKTOP_TIMER;
    if (!strcmp(part, "closed"))
        closed_descriptors(source);
    else if (!strcmp(part, "confined"))
        confined(source);
    else if (!strcmp(part, "crowd"))
        crowd(source);
    else
        no_timer();
    return verdict();
}
