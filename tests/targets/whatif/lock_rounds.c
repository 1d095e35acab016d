/* Groups of threads that repeat a list of steps for ever, and count their rounds.
 *
 * lock_rounds GROUP...
 *
 * A GROUP is THREADS:STEP,STEP,... with these steps; ~ before a time makes it exponential:
 *
 *   cUS       compute for US microseconds        sUS      sleep
 *   L1 L1-8   take a mutex, or a random one      R1 W1    read or write an rwlock, or a random one
 *   U         release what was taken last
 *   P1        put into a queue that has room for 16      G1       get from it
 *   S1/3 V1   take a semaphore that begins with 3 units, and post it
 *   B1        wait at a barrier of all threads of the group
 *   A1        the same with a mutex and a condition, which the last thread broadcasts
 *   M1 M2/50  set the mark "mark 1"; or "mark 2" in each 50th round alone
 *
 * "ready"; at each line the program says its rounds by group and how long it runs. LOOPS_PER_US
 * sets the speed of the processor, so that several runs compute the same.
 *
 * With -DCOZ each round is a progress point of the profiler coz. Threads compute in another
 * function while they have taken something. So coz can speed up that line alone.
 */
#include <math.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#include "../../../native/include/locktop.h"
#include "../target.h"

#ifdef COZ
#include <coz.h>
#else
#define COZ_PROGRESS_NAMED(name)
#endif

enum { LOCKS = 64, GROUPS = 8, STEPS = 64, THREADS = 512, CAPACITY = 16, DEPTH = 8 };

struct step {
    char what;
    int first, last, random; /* lock; or microseconds in first */
    unsigned number;         /* behind a slash */
};

struct group {
    int threads, steps;
    struct step step[STEPS];
    pthread_barrier_t barrier;
};

struct taken {
    char what;
    int number;
};

struct worker {
    struct group *group;
    uint64_t seed;
    int depth;
    struct taken taken[DEPTH];
    _Alignas(64) atomic_ulong rounds;
};

static struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    int count;
} queues[LOCKS];
static struct meeting {
    pthread_mutex_t mutex;
    pthread_cond_t all_arrived;
    int arrived;
    unsigned long turn;
} meetings[LOCKS];
static pthread_mutex_t mutexes[LOCKS];
static pthread_rwlock_t rwlocks[LOCKS];
static sem_t semaphores[LOCKS];
static struct group groups[GROUPS];
static struct worker workers[THREADS];
static int group_count, worker_count;
static double loops_per_us, sleep_extra_us;

static KEPT void compute(double us)
{
    for (volatile long left = (long)(us * loops_per_us); left > 0; left--)
        continue;
}

static KEPT void compute_inside(double us)
{
    for (volatile long left = (long)(us * loops_per_us); left > 0; left--)
        continue;
}

static KEPT void sleep_us(double us)
{
    struct timespec time = {.tv_sec = (time_t)(us / 1e6), .tv_nsec = (long)fmod(us * 1e3, 1e9)};
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        continue; /* a profiler may send signals */
}

static double random_part(struct worker *worker) /* above 0, below 1 */
{
    worker->seed = worker->seed * 6364136223846793005u + 1442695040888963407u;
    return ((double)(worker->seed >> 32) + 0.5) / 4294967296.0;
}

static double duration(struct worker *worker, const struct step *step)
{
    return step->random ? -log(random_part(worker)) * step->first : step->first;
}

static KEPT void put(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    while (queue->count == CAPACITY)
        pthread_cond_wait(&queue->emptied, &queue->mutex);
    queue->count++;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->mutex);
}

static KEPT void get(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    while (queue->count == 0)
        pthread_cond_wait(&queue->filled, &queue->mutex);
    queue->count--;
    pthread_cond_signal(&queue->emptied);
    pthread_mutex_unlock(&queue->mutex);
}

static KEPT void meet(const struct group *group, struct meeting *meeting)
{
    pthread_mutex_lock(&meeting->mutex);
    unsigned long turn = meeting->turn;
    if (++meeting->arrived == group->threads) {
        meeting->arrived = 0;
        meeting->turn++;
        pthread_cond_broadcast(&meeting->all_arrived);
    }
    while (meeting->turn == turn)
        pthread_cond_wait(&meeting->all_arrived, &meeting->mutex);
    pthread_mutex_unlock(&meeting->mutex);
}

static KEPT void take(struct worker *worker, const struct step *step)
{
    int choices = step->last - step->first + 1;
    int number = step->first + (choices > 1 ? (int)(random_part(worker) * choices) : 0);
    worker->taken[worker->depth++] = (struct taken){step->what, number};
    if (step->what == 'L')
        pthread_mutex_lock(&mutexes[number]);
    else if (step->what == 'R')
        pthread_rwlock_rdlock(&rwlocks[number]);
    else
        pthread_rwlock_wrlock(&rwlocks[number]);
}

static KEPT void release(struct worker *worker)
{
    struct taken last = worker->taken[--worker->depth];
    if (last.what == 'L')
        pthread_mutex_unlock(&mutexes[last.number]);
    else
        pthread_rwlock_unlock(&rwlocks[last.number]);
}

static KEPT void set_mark(const struct worker *worker, const struct step *step)
{
    static const char *const texts[] = {"mark 0", "mark 1", "mark 2", "mark 3"};
    if (!step->number || atomic_load(&worker->rounds) % step->number == 0)
        locktop_mark(texts[step->first % 4]);
}

static void run_step(struct worker *worker, const struct step *step)
{
    switch (step->what) {
    case 'c': (worker->depth ? compute_inside : compute)(duration(worker, step)); break;
    case 's': sleep_us(duration(worker, step)); break;
    case 'U': release(worker); break;
    case 'P': put(&queues[step->first]); break;
    case 'G': get(&queues[step->first]); break;
    case 'S': sem_wait(&semaphores[step->first]); break;
    case 'V': sem_post(&semaphores[step->first]); break;
    case 'M': set_mark(worker, step); break;
    case 'A': meet(worker->group, &meetings[step->first]); break;
    case 'B': pthread_barrier_wait(&worker->group->barrier); break;
    default: take(worker, step);
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (;;) {
        for (int i = 0; i < worker->group->steps; i++)
            run_step(worker, &worker->group->step[i]);
        atomic_fetch_add_explicit(&worker->rounds, 1, memory_order_relaxed);
        COZ_PROGRESS_NAMED("round");
    }
    return NULL;
}

static void parse(struct group *group, char *text)
{
    group->threads = (int)strtol(text, &text, 10);
    while (*text == ':' || *text == ',') {
        struct step *step = &group->step[group->steps++];
        step->what = *++text;
        step->random = *++text == '~';
        text += step->random;
        step->first = step->last = (int)strtol(text, &text, 10);
        if (*text == '-')
            step->last = (int)strtol(text + 1, &text, 10);
        if (*text == '/')
            step->number = (unsigned)strtol(text + 1, &text, 10);
        if (step->last >= LOCKS && step->what != 'c' && step->what != 's')
            exit(2);
        if (step->what == 'S' && step->number)
            must(sem_init(&semaphores[step->first], 0, step->number), "sem_init");
    }
    if (*text || group->threads < 1 || worker_count + group->threads > THREADS)
        exit(2);
    must(pthread_barrier_init(&group->barrier, NULL, (unsigned)group->threads), "barrier");
}

static void calibrate(void)
{
    const char *given = getenv("LOOPS_PER_US");
    loops_per_us = given ? atof(given) : 1000;
    for (int i = 0; !given && i < 20; i++) {
        double began = now();
        compute(1000);
        loops_per_us *= 1e-3 / (now() - began);
    }
}

/* A sleep is longer than asked for: the timer and the way back to a CPU take time. */
static void measure_sleeps(void)
{
    enum { TIMES = 200 };
    prctl(PR_SET_TIMERSLACK, 1); /* for all threads that this one starts */
    double began = now();
    for (int i = 0; i < TIMES; i++)
        sleep_us(100);
    sleep_extra_us = (now() - began) * 1e6 / TIMES - 100;
}

static void tell(double began)
{
    char line[512];
    int length = snprintf(line, sizeof line,
                          "{\"loops_per_us\": %.6g, \"sleep_extra_us\": %.6g, \"seconds\": %.9f",
                          loops_per_us, sleep_extra_us, now() - began);
    for (int i = 0; i < group_count; i++) {
        unsigned long rounds = 0;
        for (int j = 0; j < worker_count; j++)
            if (workers[j].group == &groups[i])
                rounds += atomic_load(&workers[j].rounds);
        length += snprintf(line + length, sizeof line - (size_t)length, "%s%lu",
                           i ? ", " : ", \"rounds\": [", rounds);
    }
    snprintf(line + length, sizeof line - (size_t)length, "]}");
    say(line);
}

int main(int count, char **arguments)
{
    if (count < 2 || count > GROUPS)
        return 2;
    calibrate();
    measure_sleeps();
    for (int i = 0; i < LOCKS; i++) {
        pthread_mutex_init(&mutexes[i], NULL);
        pthread_rwlock_init(&rwlocks[i], NULL);
        pthread_mutex_init(&queues[i].mutex, NULL);
        pthread_cond_init(&queues[i].filled, NULL);
        pthread_cond_init(&queues[i].emptied, NULL);
        pthread_mutex_init(&meetings[i].mutex, NULL);
        pthread_cond_init(&meetings[i].all_arrived, NULL);
    }
    for (; group_count < count - 1; group_count++) {
        parse(&groups[group_count], arguments[group_count + 1]);
        for (int i = 0; i < groups[group_count].threads; i++, worker_count++)
            workers[worker_count] =
                (struct worker){.group = &groups[group_count], .seed = (uint64_t)worker_count + 1};
    }
    for (int i = 0; i < worker_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "group%d-%d", (int)(workers[i].group - groups), i);
        start(work, &workers[i], name);
    }
    double began = now();
    say("ready");
    for (;;) {
        hear();
        tell(began);
    }
}
