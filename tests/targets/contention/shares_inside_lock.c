/* Threads fight for a lock, and three functions take 70, 20 and 10 % of each hold. The argument is
 * compute, sleep, mixed, nested, rwlock or yields. With mixed, the second function sleeps for 2 ms,
 * and the others compute. With nested, the first function works under a second lock. With yields,
 * each holder lets another thread run. A second argument sets the length of a hold. A line after
 * "ready" ends the program, which says the seconds of each function, and the number of holds.
 */
#include "../target.h"

#include <sched.h>

enum { THREADS = 3, PARTS = 3 };
static const int tenths[PARTS] = {7, 2, 1};

struct truth {
    double wall_s[PARTS], cpu_s[PARTS];
    int holds;
    volatile uint64_t sum;
};

pthread_mutex_t g_outer = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_inner = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t g_shared = PTHREAD_RWLOCK_INITIALIZER;
static struct truth truths[THREADS];
static volatile int stopped;
static const char *way;
static int rounds = 20000; /* of a computation that takes a tenth of a hold */
static int sleeps, mixed, nested, reads, yields;

static double cpu_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static KEPT void computes(struct truth *truth, int amount)
{
    uint64_t sum = truth->sum;
    for (int i = 0; i < amount * rounds; i++)
        sum = sum * 6364136223846793005u + 1442695040888963407u;
    truth->sum = sum;
}

static KEPT void works(struct truth *truth, int part)
{
    if (sleeps)
        pause_ms((unsigned)tenths[part]);
    else if (mixed && part == 1)
        pause_ms(2);
    else
        computes(truth, tenths[part]);
}

static KEPT void takes_most(struct truth *truth)
{
    if (nested)
        pthread_mutex_lock(&g_inner);
    works(truth, 0);
    if (nested)
        pthread_mutex_unlock(&g_inner);
    truth->sum++; /* no tail call */
}

static KEPT void takes_some(struct truth *truth)
{
    works(truth, 1);
    truth->sum++;
}

static KEPT void takes_little(struct truth *truth)
{
    works(truth, 2);
    truth->sum++;
}

static KEPT void works_without_lock(struct truth *truth)
{
    computes(truth, 1);
    truth->sum++;
}

static void (*const functions[PARTS])(struct truth *) = {takes_most, takes_some, takes_little};

static KEPT void holds_once(struct truth *truth)
{
    if (reads)
        pthread_rwlock_wrlock(&g_shared);
    else
        pthread_mutex_lock(&g_outer);
    double wall = now(), cpu = cpu_now();
    for (int part = 0; part < PARTS; part++) {
        functions[part](truth);
        double wall_after = now(), cpu_after = cpu_now();
        truth->wall_s[part] += wall_after - wall;
        truth->cpu_s[part] += cpu_after - cpu;
        wall = wall_after;
        cpu = cpu_after;
    }
    truth->holds++;
    if (yields)
        sched_yield();
    if (reads)
        pthread_rwlock_unlock(&g_shared);
    else
        pthread_mutex_unlock(&g_outer);
}

static KEPT void *fights(void *argument)
{
    struct truth *truth = argument;
    while (!stopped) {
        holds_once(truth);
        works_without_lock(truth);
    }
    return NULL;
}

/* The inner lock needs waiters too. */
static KEPT void *wants_inner(void *argument)
{
    while (!stopped) {
        pthread_mutex_lock(&g_inner);
        pthread_mutex_unlock(&g_inner);
        pause_ms(1);
    }
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS], other = 0;
    int holds = 0;
    double wall_s[PARTS] = {0}, cpu_s[PARTS] = {0};
    way = argc > 1 ? argv[1] : "compute";
    if (argc > 2)
        rounds = atoi(argv[2]);
    sleeps = !strcmp(way, "sleep");
    mixed = !strcmp(way, "mixed");
    nested = !strcmp(way, "nested");
    reads = !strcmp(way, "rwlock");
    yields = !strcmp(way, "yields");
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(fights, &truths[i], "fighter");
    if (nested)
        other = start(wants_inner, NULL, "other");
    say("ready");
    hear();
    stopped = 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        holds += truths[i].holds;
        for (int part = 0; part < PARTS; part++) {
            wall_s[part] += truths[i].wall_s[part];
            cpu_s[part] += truths[i].cpu_s[part];
        }
    }
    if (nested)
        pthread_join(other, NULL);
    printf("{\"wall_s\": [%.6f, %.6f, %.6f], \"cpu_s\": [%.6f, %.6f, %.6f], \"holds\": %d}\n",
           wall_s[0], wall_s[1], wall_s[2], cpu_s[0], cpu_s[1], cpu_s[2], holds);
    return 0;
}
