/* Works under profiles while its own signal handlers run: SIGPROF of its own timer, and SIGALRM
 * that interrupts often. Says how often each came.
 */
#include <signal.h>
#include <sys/time.h>

#include "profiled_work.h"

DEFINE_WORK(main_work)
DEFINE_WORK(handler_work)

static volatile sig_atomic_t profs, interruptions;

static void on_prof(int number)
{
    (void)number;
    profs++;
}

static void on_interruption(int number)
{
    (void)number;
    int before = errno;
    handler_work(1);
    if (errno != before)
        failures++;
    interruptions++;
}

int main(int argc, char **argv)
{
    struct itimerval prof = {{0, 20000}, {0, 20000}}, real = {{0, 5000}, {0, 5000}};
    int profiles[2], with = argc > 1 && !strcmp(argv[1], "profiled");
    struct sigaction action = {.sa_handler = on_prof, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    action.sa_handler = on_interruption;
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; with && i < 2; i++) {
        profiles[i] = profile_must(locktop_profile_create_section(
            hot, 16, LOCKTOP_TIMER, 0, i ? LOCKTOP_ALL_THREADS : LOCKTOP_THIS_THREAD, "signals"));
        profile_must(locktop_profile_start(profiles[i]));
    }
    setitimer(ITIMER_PROF, &prof, NULL);
    setitimer(ITIMER_REAL, &real, NULL);
    errno = 77;
    uint64_t begin = cpu_ns();
    while (cpu_ns() - begin < 1500000000)
        main_work(50);
    check_equal("errno", errno, 77);
    memset(&prof, 0, sizeof prof);
    setitimer(ITIMER_PROF, &prof, NULL);
    setitimer(ITIMER_REAL, &prof, NULL);
    uint64_t used = cpu_ns() - begin, sampled = 0;
    struct locktop_profile_totals totals;
    for (int i = 0; with && i < 2; i++) {
        profile_must(locktop_profile_stop(profiles[i]));
        sampled = read_counts(profiles[i], &totals, 0, BUCKETS_MAX);
        check_equal("sum of the buckets", (long)sampled, (long)totals.samples);
    }
    printf("{\"failures\": %d, \"profs\": %d, \"interruptions\": %d, \"cpu_ns\": %llu, "
           "\"samples\": %llu, "
           "\"prof_is_ours\": %d}\n",
           failures, (int)profs, (int)interruptions, (unsigned long long)used,
           (unsigned long long)sampled,
           sigaction(SIGPROF, NULL, &action) == 0 && action.sa_handler == on_prof);
    fflush(stdout);
    hear();
    return 0;
}
