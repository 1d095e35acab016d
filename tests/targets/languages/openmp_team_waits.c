/* A team of OpenMP threads: openmp_team_waits [barrier|critical|lock]. The waits are futex calls
 * inside libgomp, which no preloaded library sees. Says {"main": tid} when all other threads are
 * about to wait. They wait for the first thread: at a barrier, or for a lock or critical section
 * that is taken. The first thread holds these, and waits for a line on stdin.
 */
#include <omp.h>

#include "../target.h"

enum { THREADS = 3 };

static int arrived, is_held;
static omp_lock_t lock;

static void keep(void)
{
    __atomic_store_n(&is_held, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < THREADS - 1)
        pause_ms(1);
    char text[40];
    snprintf(text, sizeof text, "{\"main\": %d}", own_tid());
    say(text);
    hear();
}

static void arrive(void)
{
    while (!__atomic_load_n(&is_held, __ATOMIC_ACQUIRE))
        pause_ms(1);
    __atomic_fetch_add(&arrived, 1, __ATOMIC_RELEASE);
}

__attribute__((noinline)) static void take_critical(int is_first)
{
    if (!is_first)
        arrive();
#pragma omp critical
    if (is_first)
        keep();
}

__attribute__((noinline)) static void take_lock(int is_first)
{
    if (!is_first)
        arrive();
    omp_set_lock(&lock);
    if (is_first)
        keep();
    omp_unset_lock(&lock);
}

__attribute__((noinline)) static void meet(int is_first)
{
    if (is_first)
        keep();
    else
        arrive();
#pragma omp barrier
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "barrier";
    void (*part)(int) = !strcmp(what, "critical") ? take_critical
                        : !strcmp(what, "lock")   ? take_lock
                                                  : meet;
    omp_init_lock(&lock);
    omp_set_num_threads(THREADS);
#pragma omp parallel
    part(omp_get_thread_num() == 0);
    say("done");
    return 0;
}
