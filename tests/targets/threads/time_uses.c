/* Threads that each spend their time in one way, and report what they know of it.
 *
 * At a line the program says each thread's id, the CPU time of the thread's clock, and the thread's
 * schedstat. The times before and after these readings are beside them.
 */
#include "../target.h"

#include <fcntl.h>
#include <sched.h>

enum { HOLD_MS = 20, BLOCK = 4096, ROOM = 4096 };

static pthread_mutex_t g_fought_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t g_kept_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t g_work_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_never = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t g_spun_lock;
static const char *scratch_file;

static KEPT void burn(void)
{
    for (volatile int i = 0; i < 1000;)
        i = i + 1;
}

static void *burns(void *unused)
{
    (void)unused;
    for (;;)
        burn();
    return NULL;
}

static void *burns_on_one_cpu(void *unused)
{
    cpu_set_t may, one;
    int cpu = 0;
    sched_getaffinity(0, sizeof may, &may);
    while (!CPU_ISSET(cpu, &may))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    must(sched_setaffinity(0, sizeof one, &one) ? errno : 0, "sched_setaffinity");
    return burns(unused);
}

static void *sleeps(void *unused)
{
    (void)unused;
    for (;;)
        pause_ms(HOLD_MS);
    return NULL;
}

static void *holds(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&g_fought_lock);
        pause_ms(HOLD_MS);
        pthread_mutex_unlock(&g_fought_lock);
    }
    return NULL;
}

static void *waits_once(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&g_kept_lock);
    return NULL;
}

static void *spins_at_a_lock(void *unused)
{
    (void)unused;
    pthread_spin_lock(&g_spun_lock);
    return NULL;
}

static void *has_no_work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&g_work_lock);
    for (;;)
        pthread_cond_wait(&g_never, &g_work_lock);
    return NULL;
}

/* Each block is on the disk before the next one. */
static void *writes(void *unused)
{
    static char block[BLOCK] __attribute__((aligned(BLOCK)));
    int file = open(scratch_file, O_CREAT | O_RDWR | O_DIRECT, 0600);
    (void)unused;
    if (file < 0) /* a file system without O_DIRECT */
        file = open(scratch_file, O_CREAT | O_RDWR, 0600);
    must(file < 0 ? errno : 0, scratch_file);
    for (unsigned long i = 0;; i++) {
        if (pwrite(file, block, sizeof block, (off_t)(i % 256 * BLOCK)) != sizeof block)
            must(errno, "pwrite");
        must(fsync(file) ? errno : 0, "fsync");
    }
    return NULL;
}

static const struct use {
    const char *name;
    void *(*run)(void *);
} uses[] = {
    {"burns", burns},
    {"pinned-0", burns_on_one_cpu},
    {"pinned-1", burns_on_one_cpu},
    {"sleeps", sleeps},
    {"fights-0", holds},
    {"fights-1", holds},
    {"waits", waits_once},
    {"idle", has_no_work},
    {"writes", writes},
    {"spins", spins_at_a_lock},
};
enum { USES = sizeof uses / sizeof uses[0] };

static int tids[USES];
static pthread_t threads[USES];

static int wanted(int number, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], uses[number].name) == 0)
            return 1;
    return 0;
}

static double cpu_s(pthread_t thread)
{
    clockid_t clock;
    struct timespec time;
    must(pthread_getcpuclockid(thread, &clock), "pthread_getcpuclockid");
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double queued_s(int tid)
{
    char path[64];
    unsigned long long ran = 0, queued = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", tid);
    FILE *file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%llu %llu", &ran, &queued) != 2)
        queued = 0;
    if (file)
        fclose(file);
    return (double)queued / 1e9;
}

static void report(void)
{
    char text[ROOM];
    double before = now();
    int at = snprintf(text, sizeof text, "{\"threads\": {");
    const char *comma = "";
    for (int i = 0; i < USES; i++)
        if (tids[i]) {
            at += snprintf(text + at, sizeof text - (size_t)at,
                           "%s\"%s\": {\"tid\": %d, \"cpu_s\": %.6f, \"queued_s\": %.6f}", comma,
                           uses[i].name, tids[i], cpu_s(threads[i]), queued_s(tids[i]));
            comma = ", ";
        }
    snprintf(text + at, sizeof text - (size_t)at, "}, \"before\": %.6f, \"after\": %.6f}", before,
             now());
    say(text);
}

static void *enter(void *argument)
{
    int number = (int)(intptr_t)argument;
    __atomic_store_n(&tids[number], own_tid(), __ATOMIC_RELEASE);
    return uses[number].run(NULL);
}

/* time_uses FILE NAME...: threads of these names, one of which writes to FILE. */
int main(int argc, char **argv)
{
    scratch_file = argv[1];
    pthread_mutex_lock(&g_kept_lock);
    pthread_spin_init(&g_spun_lock, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_lock(&g_spun_lock);
    for (int i = 0; i < USES; i++)
        if (wanted(i, argc, argv)) {
            threads[i] = start(enter, (void *)(intptr_t)i, uses[i].name);
            while (!__atomic_load_n(&tids[i], __ATOMIC_ACQUIRE))
                pause_ms(1);
        }
    for (;;) {
        report();
        hear();
    }
}
