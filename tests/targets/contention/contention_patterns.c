/* Each contention pattern that has a name, `contention_patterns NAME`. The near miss
 * `contention_patterns NAME-not` differs in the one property that counts. Says "ready" when all
 * threads run, and continues until the process is killed.
 *
 *   convoy           the mutex goes to the next waiter, which is still asleep, each time (priority
 *                    inheritance); not: each hold takes 5 ms
 *   serialised       four threads do all their work under one mutex; not: as long without the mutex
 *   herd             eight threads wake for what one of them takes; not: each thread works
 *   starved          readers that overlap, and a writer; not: a lock that prefers writers
 *   longread-not     a near miss of starved: one reader keeps the lock, others come and go
 *   longhold         the holder of a mutex reads from a pipe; not: the holder computes
 *   falseidle        a pool waits for a thread that waits for a mutex; not: another posts too
 *   oversubscribed   far more threads compute than there are CPUs, two wait for a lock; not: no
 *                    thread waits
 *   cpustarved       far more threads than CPUs compute, and take a mutex briefly; not: as many
 *                    compute without it, and four hold it for long
 *   holderstarved    far more threads than CPUs compute, one of them with a mutex that two others
 *                    want; not: it computes alone
 *   highrate         one thread takes a mutex all the time; not: the thread works in between
 */
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "../target.h"

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t g_rwlock = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t g_cond = PTHREAD_COND_INITIALIZER;
sem_t g_work;
static sem_t there; /* a thread has begun */
static int is_not;  /* the near miss */
static int tokens;
static int pipe_of[2];

static KEPT void compute_us(double us)
{
    for (double end = now() + us / 1e6; now() < end;)
        continue;
}

/* ---- the threads ---- */

static KEPT void *convoy(void *unused)
{
    sem_post(&there);
    for (;;) {
        pthread_mutex_lock(&g_lock);
        if (is_not)
            pause_ms(5);
        pthread_mutex_unlock(&g_lock);
    }
    return unused;
}

static KEPT void *serialised(void *unused)
{
    sem_post(&there);
    for (;;) {
        pthread_mutex_lock(&g_lock);
        pause_ms(2);
        pthread_mutex_unlock(&g_lock);
        if (is_not)
            compute_us(20000);
        else
            pause_ms(0); /* the waiter may take the lock */
    }
    return unused;
}

static KEPT void *herd(void *unused)
{
    pthread_mutex_lock(&g_lock);
    sem_post(&there);
    for (;;) {
        int before = tokens;
        while (is_not ? tokens == before : tokens == 0)
            pthread_cond_wait(&g_cond, &g_lock);
        if (is_not) {
            pthread_mutex_unlock(&g_lock);
            compute_us(2000);
            pthread_mutex_lock(&g_lock);
        } else {
            tokens--;
        }
    }
    return unused;
}

static KEPT void *waker(void *unused)
{
    sem_post(&there);
    for (;;) {
        pthread_mutex_lock(&g_lock);
        tokens++;
        pthread_mutex_unlock(&g_lock);
        pthread_cond_broadcast(&g_cond);
        pause_ms(is_not ? 20 : 2);
    }
    return unused;
}

static sem_t turns[2], met[2];

/* Two readers overlap: each keeps the lock until the other reads too.
 * The near miss prefers writers. */
static KEPT void *reader(void *number)
{
    long own = (long)number;
    for (int alone = !own;; alone = 0) {
        sem_wait(&turns[own]);
        pthread_rwlock_rdlock(&g_rwlock);
        sem_post(alone ? &there : &met[!own]);
        pause_ms(20);
        sem_post(&turns[!own]);
        if (!is_not)
            sem_wait(&met[own]);
        pthread_rwlock_unlock(&g_rwlock);
    }
    return NULL;
}

static KEPT void *long_reader(void *unused)
{
    char none;
    pthread_rwlock_rdlock(&g_rwlock);
    sem_post(&there);
    (void)!read(pipe_of[0], &none, 1);
    pthread_rwlock_unlock(&g_rwlock);
    return unused;
}

static KEPT void *brief_reader(void *unused)
{
    sem_post(&there);
    for (;;) {
        pthread_rwlock_rdlock(&g_rwlock);
        pause_ms(20);
        pthread_rwlock_unlock(&g_rwlock);
        pause_ms(20);
    }
    return unused;
}

static KEPT void *writer(void *unused)
{
    sem_post(&there);
    for (;;) {
        pthread_rwlock_wrlock(&g_rwlock);
        pthread_rwlock_unlock(&g_rwlock);
        pause_ms(10);
    }
    return unused;
}

static KEPT void *waiter(void *unused)
{
    sem_post(&there);
    pthread_mutex_lock(&g_lock);
    pthread_mutex_unlock(&g_lock);
    return unused;
}

static KEPT void *long_hold(void *unused)
{
    char c;
    pthread_mutex_lock(&g_lock);
    sem_post(&there);
    if (is_not)
        compute_us(1e12);
    else if (read(pipe_of[0], &c, 1) == 1)
        pthread_mutex_unlock(&g_lock);
    return unused;
}

static KEPT void *worker(void *unused)
{
    for (;;) {
        sem_wait(&g_work);
        sem_post(&there);
    }
    return unused;
}

/* Gives each worker one item, and wants the mutex before the next item. */
static KEPT void *giver(void *unused)
{
    for (int i = 0; i < 4; i++)
        sem_post(&g_work);
    return waiter(unused);
}

static KEPT void *other_giver(void *unused)
{
    sem_post(&g_work);
    pause();
    return unused;
}

static KEPT void *busy(void *unused)
{
    sem_post(&there);
    compute_us(1e12);
    return unused;
}

static KEPT void *computes_and_locks(void *unused)
{
    sem_post(&there);
    for (;;) {
        compute_us(100);
        pthread_mutex_lock(&g_lock);
        compute_us(20);
        pthread_mutex_unlock(&g_lock);
    }
    return unused;
}

static KEPT void *holds_long(void *unused)
{
    sem_post(&there);
    for (;;) {
        pthread_mutex_lock(&g_lock);
        pause_ms(200);
        pthread_mutex_unlock(&g_lock);
        pause_ms(0); /* the waiter may take the lock */
    }
    return unused;
}

static KEPT void *computes_inside(void *unused)
{
    sem_post(&there);
    for (;;) {
        pthread_mutex_lock(&g_lock);
        compute_us(3e6);
        pthread_mutex_unlock(&g_lock);
        pause_ms(0); /* the waiter may take the lock */
    }
    return unused;
}

static KEPT void *often(void *unused)
{
    sem_post(&there);
    for (;;) {
        pthread_mutex_lock(&g_lock);
        pthread_mutex_unlock(&g_lock);
        if (is_not)
            compute_us(3);
    }
    return unused;
}

/* ---- the scenarios ---- */

/* Returns after all threads have begun. */
static void run(int count, void *(*thread)(void *), const char *name)
{
    for (int i = 0; i < count; i++)
        pthread_detach(start(thread, NULL, name));
    while (count--)
        sem_wait(&there);
}

static void make_inheriting(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    must(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT), "setprotocol");
    must(pthread_mutex_init(&g_lock, &attributes), "mutex_init");
}

static void start_starving(void)
{
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    if (is_not)
        pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    must(pthread_rwlock_init(&g_rwlock, &attributes), "rwlock_init");
}

int main(int argc, char **argv)
{
    char what[32] = "";
    strncat(what, argc > 1 ? argv[1] : "", sizeof what - 1);
    char *suffix = strstr(what, "-not");
    is_not = suffix != NULL;
    if (suffix)
        *suffix = 0;
    sem_init(&there, 0, 0);
    sem_init(&g_work, 0, 0);
    must(pipe(pipe_of), "pipe");
    if (!strcmp(what, "convoy")) {
        make_inheriting();
        run(8, convoy, "marcher");
    } else if (!strcmp(what, "serialised")) {
        run(4, serialised, "worker");
    } else if (!strcmp(what, "herd")) {
        run(8, herd, "cow");
        run(1, waker, "waker");
    } else if (!strcmp(what, "starved")) {
        start_starving();
        for (long i = 0; i < 2; i++) {
            sem_init(&turns[i], 0, i == 0);
            sem_init(&met[i], 0, 0);
            pthread_detach(start(reader, (void *)i, "reader"));
        }
        sem_wait(&there);
        run(1, writer, "writer");
    } else if (!strcmp(what, "longread")) {
        run(1, long_reader, "reader");
        run(3, brief_reader, "reader");
        run(1, writer, "writer");
    } else if (!strcmp(what, "longhold")) {
        run(1, long_hold, "holder");
        run(2, waiter, "waiter");
    } else if (!strcmp(what, "falseidle")) {
        pthread_mutex_lock(&g_lock);
        for (int i = 0; i < 4; i++)
            pthread_detach(start(worker, NULL, "pool"));
        run(1, giver, "giver");
        for (int i = 0; i < 4; i++)
            sem_wait(&there);
        if (is_not)
            run(1, other_giver, "other");
    } else if (!strcmp(what, "oversubscribed")) {
        cpu_set_t cpus;
        must(sched_getaffinity(0, sizeof cpus, &cpus), "getaffinity");
        pthread_mutex_lock(&g_lock);
        if (!is_not)
            run(2, waiter, "waiter");
        run(4 * CPU_COUNT(&cpus), busy, "busy");
    } else if (!strcmp(what, "cpustarved")) {
        cpu_set_t cpus;
        must(sched_getaffinity(0, sizeof cpus, &cpus), "getaffinity");
        if (is_not)
            run(4, holds_long, "worker");
        run(8 * CPU_COUNT(&cpus), is_not ? busy : computes_and_locks, "busy");
    } else if (!strcmp(what, "holderstarved")) {
        cpu_set_t cpus;
        must(sched_getaffinity(0, sizeof cpus, &cpus), "getaffinity");
        run(3, computes_inside, "worker");
        if (!is_not)
            run(8 * CPU_COUNT(&cpus), busy, "busy");
    } else if (!strcmp(what, "highrate")) {
        run(1, often, "taker");
    }
    say("ready");
    hear();
    _exit(0);
}
