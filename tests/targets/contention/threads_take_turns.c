/* Threads that do the same small work again and again, and count it:
 *
 *   threads_take_turns lock THREADS     takes the one mutex, works for some 5 us, yields with the
 *                                       mutex held, and releases the mutex
 *   threads_take_turns compute THREADS  works for some 5 us
 *
 * Says "ready" when all threads have begun. Each line on stdin requests the count and the CPU time
 * of all threads together: {"turns": ..., "cpu_s": ...}.
 */
#include <sched.h>
#include <stdatomic.h>

#include "../target.h"

enum { MAX_THREADS = 64, WORK = 4000 };

static pthread_mutex_t g_turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_run;
static struct {
    _Alignas(64) atomic_long count;
} turns[MAX_THREADS];

static KEPT void work(void)
{
    for (volatile int i = 0; i < WORK; i++)
        continue;
}

static KEPT void *lock_turns(void *argument)
{
    atomic_long *count = &turns[(uintptr_t)argument].count;
    pthread_barrier_wait(&all_run);
    for (;;) {
        pthread_mutex_lock(&g_turn);
        work();
        sched_yield();
        pthread_mutex_unlock(&g_turn);
        atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
    }
    return NULL;
}

static KEPT void *compute(void *argument)
{
    atomic_long *count = &turns[(uintptr_t)argument].count;
    pthread_barrier_wait(&all_run);
    for (;;) {
        work();
        atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int locks = argc > 1 && strcmp(argv[1], "lock") == 0;
    unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    if (threads < 1 || threads > MAX_THREADS)
        return 2;
    pthread_barrier_init(&all_run, NULL, threads + 1);
    for (uintptr_t i = 0; i < threads; i++)
        start(locks ? lock_turns : compute, (void *)i, "turn");
    pthread_barrier_wait(&all_run);
    say("ready");
    for (;;) {
        hear();
        long sum = 0;
        struct timespec cpu;
        char text[100];
        for (unsigned i = 0; i < threads; i++)
            sum += atomic_load(&turns[i].count);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
        snprintf(text, sizeof text, "{\"turns\": %ld, \"cpu_s\": %.9f}", sum,
                 (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
        say(text);
    }
}
