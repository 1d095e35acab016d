/* Two processes that cross on locks in a file: `two_processes_cross FILE one WHAT`, then
 * `two_processes_cross FILE other WHAT`. Each process takes its first lock. When the other process
 * has done so too, each process wants the other's lock. WHAT is "mutex", "rwlock" (one process
 * reads), or "timed" (the other process gives up after an hour). Each process says its tid. The
 * first process also has one thread that is stuck behind, and says that thread's tid.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>

#include "../target.h"

static struct shared {
    pthread_mutex_t alpha, beta;
    pthread_rwlock_t table;
    int made, have;
} *shared;

static pthread_mutex_t g_own_lock = PTHREAD_MUTEX_INITIALIZER;
static int behind_tid;

static void make(void)
{
    pthread_mutexattr_t mutex;
    pthread_rwlockattr_t rwlock;
    pthread_mutexattr_init(&mutex);
    pthread_rwlockattr_init(&rwlock);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED);
    must(pthread_mutex_init(&shared->alpha, &mutex), "mutex");
    must(pthread_mutex_init(&shared->beta, &mutex), "mutex");
    must(pthread_rwlock_init(&shared->table, &rwlock), "rwlock");
}

static void until(const int *word, int value)
{
    while (__atomic_load_n(word, __ATOMIC_SEQ_CST) < value)
        sched_yield();
}

static void meet(void)
{
    __atomic_add_fetch(&shared->have, 1, __ATOMIC_SEQ_CST);
    until(&shared->have, 2);
}

static void say_tids(void)
{
    char text[100];
    snprintf(text, sizeof text, "{\"main\": %d, \"behind\": %d}", own_tid(), behind_tid);
    say(text);
}

static void *wait_behind(void *argument)
{
    __atomic_store_n(&behind_tid, own_tid(), __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&g_own_lock);
    return argument;
}

static void be_one(int reads)
{
    make();
    pthread_mutex_lock(&g_own_lock);
    start(wait_behind, NULL, "behind");
    until(&behind_tid, 1);
    if (reads)
        pthread_rwlock_rdlock(&shared->table);
    else
        pthread_mutex_lock(&shared->alpha);
    __atomic_store_n(&shared->made, 1, __ATOMIC_SEQ_CST);
    say_tids();
    meet();
    pthread_mutex_lock(&shared->beta);
}

static void be_other(int reads, int timed)
{
    struct timespec in_an_hour;
    clock_gettime(CLOCK_REALTIME, &in_an_hour);
    in_an_hour.tv_sec += 3600;
    until(&shared->made, 1);
    pthread_mutex_lock(&shared->beta);
    say_tids();
    meet();
    if (reads)
        pthread_rwlock_wrlock(&shared->table);
    else if (timed)
        pthread_mutex_timedlock(&shared->alpha, &in_an_hour);
    else
        pthread_mutex_lock(&shared->alpha);
}

int main(int argc, char **argv)
{
    int file = open(argc > 3 ? argv[1] : "", O_RDWR);
    must(file < 0 || ftruncate(file, sizeof *shared) ? errno : 0, "the file");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    must(shared == MAP_FAILED ? errno : 0, "mmap");
    if (!strcmp(argv[2], "one"))
        be_one(!strcmp(argv[3], "rwlock"));
    else
        be_other(!strcmp(argv[3], "rwlock"), !strcmp(argv[3], "timed"));
    hear();
    return 0;
}
