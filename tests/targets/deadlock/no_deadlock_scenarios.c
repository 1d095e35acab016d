/* Threads that fight for locks as hard as they can. Each scenario looks like a deadlock at first
 * sight and cannot be one.
 *
 *     no_deadlock_scenarios SCENARIO
 *
 * Says "ready" when all threads run. A line or the end of stdin stops the threads. Each thread ends
 * its turn. Then the program joins all threads and says "ok". The "ok" is the proof that there was
 * no deadlock.
 */
#include <sched.h>
#include <semaphore.h>

#include "../target.h"

enum { THREADS = 6, LOCKS = 6, ONCES = 1 << 14, QUEUE = 3 };

static pthread_mutex_t g_gate = PTHREAD_MUTEX_INITIALIZER, g_table = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t locks[LOCKS], g_recursive, g_robust;
static pthread_rwlock_t g_r = PTHREAD_RWLOCK_INITIALIZER, g_s = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spins[2];
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t sem_locks[LOCKS], some, room, filled, turns[THREADS];
static pthread_barrier_t meeting, everybody_runs;
static pthread_once_t onces[ONCES];
static int position, queued, stop;

struct worker {
    int number;
    unsigned random;
    int turn, done;
};
typedef void work(struct worker *self);
static work *job;

static int is_over(void)
{
    return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static unsigned random_of(struct worker *self, unsigned below)
{
    self->random = self->random * 1664525u + 1013904223u;
    return (self->random >> 16) % below;
}

/* Now and then the other threads meet a held lock. */
static void work_a_little(struct worker *self)
{
    if (random_of(self, 3) == 0)
        sched_yield();
    else if (random_of(self, 50) == 0)
        pause_ms(1);
}

static struct timespec in_a_moment(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

static KEPT void take(pthread_mutex_t *m)
{
    must(pthread_mutex_lock(m), "lock");
}

static void give(pthread_mutex_t *m)
{
    must(pthread_mutex_unlock(m), "unlock");
}

static KEPT void both(struct worker *self, pthread_mutex_t *first, pthread_mutex_t *second)
{
    take(first);
    work_a_little(self);
    take(second);
    work_a_little(self);
    give(second);
    give(first);
}

static void get(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        continue;
}

/* ---- two orders, but never at once ---- */

static void gated(struct worker *self)
{
    unsigned first = random_of(self, 2);
    take(&g_gate);
    both(self, &locks[first], &locks[!first]);
    give(&g_gate);
}

static void gated_by_a_writer(struct worker *self)
{
    pthread_rwlock_wrlock(&g_r);
    both(self, &locks[self->number % 2], &locks[!(self->number % 2)]);
    pthread_rwlock_unlock(&g_r);
}

static void backing_off(struct worker *self)
{
    unsigned first = random_of(self, 2);
    take(&locks[first]);
    work_a_little(self);
    if (pthread_mutex_trylock(&locks[!first]) == 0)
        give(&locks[!first]);
    give(&locks[first]);
    sched_yield();
}

static void giving_up(struct worker *self)
{
    struct timespec until = in_a_moment();
    unsigned first = random_of(self, 2);
    take(&locks[first]);
    work_a_little(self);
    if (pthread_mutex_timedlock(&locks[!first], &until) == 0)
        give(&locks[!first]);
    give(&locks[first]);
}

/* ---- one order ---- */

static void ordered(struct worker *self)
{
    unsigned a = random_of(self, LOCKS), b = random_of(self, LOCKS);
    if (a != b)
        both(self, &locks[a < b ? a : b], &locks[a < b ? b : a]);
}

static void at_table(struct worker *self)
{
    int left = self->number % LOCKS, right = (left + 1) % LOCKS;
    both(self, &locks[left < right ? left : right], &locks[left < right ? right : left]);
}

static void hand_over_hand(struct worker *self)
{
    take(&locks[0]);
    for (int i = 1; i < LOCKS; i++) {
        take(&locks[i]);
        give(&locks[i - 1]);
        work_a_little(self);
    }
    give(&locks[LOCKS - 1]);
}

static void recursive(struct worker *self)
{
    take(&g_recursive);
    take(&locks[0]);
    take(&g_recursive);
    work_a_little(self);
    give(&g_recursive);
    give(&locks[0]);
    give(&g_recursive);
}

static void spinning(struct worker *self)
{
    pthread_spin_lock(&spins[0]);
    pthread_spin_lock(&spins[1]);
    pthread_spin_unlock(&spins[1]);
    pthread_spin_unlock(&spins[0]);
    work_a_little(self);
}

/* ---- readers and writers ---- */

static void two_reads(struct worker *self, pthread_rwlock_t *first, pthread_rwlock_t *second)
{
    pthread_rwlock_rdlock(first);
    work_a_little(self);
    pthread_rwlock_rdlock(second);
    pthread_rwlock_unlock(second);
    pthread_rwlock_unlock(first);
}

/* Readers go first here. Readers of both locks, in any order, wait only for writers of one. */
static void readers(struct worker *self)
{
    pthread_rwlock_t *one = random_of(self, 2) ? &g_r : &g_s;
    if (self->number < THREADS / 2) {
        two_reads(self, one, one == &g_r ? &g_s : &g_r);
        return;
    }
    pthread_rwlock_wrlock(one);
    work_a_little(self);
    pthread_rwlock_unlock(one);
    pause_ms(1); /* otherwise no thread would ever read */
}

static void reading_again(struct worker *self)
{
    if (self->number)
        two_reads(self, &g_r, &g_r);
    else if (pthread_rwlock_wrlock(&g_r) == 0)
        pthread_rwlock_unlock(&g_r);
}

static void reading_then_writing(struct worker *self)
{
    pthread_rwlock_rdlock(&g_r);
    work_a_little(self);
    pthread_rwlock_unlock(&g_r);
    pthread_rwlock_wrlock(&g_r);
    work_a_little(self);
    pthread_rwlock_unlock(&g_r);
}

/* ---- semaphores ---- */

static void semaphores_as_locks(struct worker *self)
{
    get(&sem_locks[0]);
    work_a_little(self);
    get(&sem_locks[1]);
    sem_post(&sem_locks[1]);
    sem_post(&sem_locks[0]);
}

static void some_at_a_time(struct worker *self)
{
    pthread_mutex_t *one = &locks[random_of(self, 2)];
    get(&some);
    take(one);
    work_a_little(self);
    give(one);
    sem_post(&some);
}

static void in_and_out(struct worker *self)
{
    int puts = self->number % 2;
    get(puts ? &room : &filled);
    take(&locks[0]);
    work_a_little(self);
    give(&locks[0]);
    sem_post(puts ? &filled : &room);
}

/* Each thread holds a lock of its own while it waits for a signal from the thread before. */
static void in_turn(struct worker *self)
{
    take(&locks[self->number]);
    get(&turns[self->number]);
    work_a_little(self);
    sem_post(&turns[(self->number + 1) % THREADS]);
    give(&locks[self->number]);
}

/* ---- conditions, barriers, threads ---- */

static void queue(struct worker *self)
{
    int puts = self->number % 2;
    struct timespec until = in_a_moment();
    take(&g_table);
    while (!is_over() && queued == (puts ? QUEUE : 0))
        pthread_cond_timedwait(&changed, &g_table, &until), until = in_a_moment();
    if (!is_over())
        queued += puts ? 1 : -1;
    if (random_of(self, 2))
        pthread_cond_broadcast(&changed);
    else
        pthread_cond_signal(&changed);
    give(&g_table);
}

/* A thread signals without the outer lock. */
static void waiting_within(struct worker *self)
{
    struct timespec until = in_a_moment();
    if (self->number % 2 == 0) {
        take(&locks[self->number]);
        take(&g_table);
        pthread_cond_timedwait(&changed, &g_table, &until);
        give(&g_table);
        give(&locks[self->number]);
        return;
    }
    take(&g_table);
    pthread_cond_signal(&changed);
    give(&g_table);
    both(self, &locks[self->number - 1], &locks[self->number]);
}

/* No thread may leave alone: the first thread announces the last meeting before it arrives. */
static void meeting_with_locks(struct worker *self)
{
    static int last = -1;
    if (self->number == 0 && is_over())
        __atomic_store_n(&last, self->turn, __ATOMIC_SEQ_CST);
    take(&locks[self->number]);
    work_a_little(self);
    pthread_barrier_wait(&meeting);
    give(&locks[self->number]);
    both(self, &g_gate, &g_table);
    self->done = __atomic_load_n(&last, __ATOMIC_SEQ_CST) == self->turn;
}

static void *take_one(void *m)
{
    take(m);
    pause_ms(1);
    give(m);
    return NULL;
}

/* The thread holds one lock while it joins a thread that wants another lock. */
static void bearing(struct worker *self)
{
    int parents = self->number < 2;
    if (parents)
        take(&locks[self->number]);
    pthread_t thread = start(take_one, &locks[2 + self->number % 2], NULL);
    work_a_little(self);
    must(pthread_join(thread, NULL), "join");
    if (parents)
        give(&locks[self->number]);
}

static void routine(void)
{
    take(&g_table);
    give(&g_table);
    pause_ms(1); /* so that the other threads meet the held lock */
}

static void once(struct worker *self)
{
    int now_at = __atomic_load_n(&position, __ATOMIC_RELAXED);
    pthread_once(&onces[now_at % ONCES], routine);
    if (self->number == 0 && now_at < ONCES - 1)
        __atomic_store_n(&position, now_at + 1, __ATOMIC_RELAXED);
}

/* ---- locks that come and go ---- */

/* Locks at one address again and again; each lock has one order. */
static void made_again(struct worker *self)
{
    static __thread pthread_mutex_t own;
    pthread_mutex_init(&own, NULL);
    if (self->turn % 2)
        both(self, &locks[0], &own);
    else
        both(self, &own, &locks[0]);
    pthread_mutex_destroy(&own);
}

static void *die_with_it(void *argument)
{
    int result = pthread_mutex_lock(&g_robust);
    if (result == EOWNERDEAD)
        must(pthread_mutex_consistent(&g_robust), "consistent");
    else
        must(result, "robust");
    return argument;
}

static void robust(struct worker *self)
{
    if (self->number == 0) {
        must(pthread_join(start(die_with_it, NULL, NULL), NULL), "join");
        pause_ms(1);
        return;
    }
    die_with_it(NULL);
    work_a_little(self);
    give(&g_robust);
}

#define SCENARIO(name) {#name, name}
static const struct {
    const char *name;
    work *run;
} scenarios[] = {
    SCENARIO(gated),
    SCENARIO(gated_by_a_writer),
    SCENARIO(backing_off),
    SCENARIO(giving_up),
    SCENARIO(ordered),
    SCENARIO(at_table),
    SCENARIO(hand_over_hand),
    SCENARIO(recursive),
    SCENARIO(spinning),
    SCENARIO(readers),
    SCENARIO(reading_again),
    SCENARIO(reading_then_writing),
    SCENARIO(semaphores_as_locks),
    SCENARIO(some_at_a_time),
    SCENARIO(in_and_out),
    SCENARIO(in_turn),
    SCENARIO(queue),
    SCENARIO(waiting_within),
    SCENARIO(meeting_with_locks),
    SCENARIO(bearing),
    SCENARIO(once),
    SCENARIO(made_again),
    SCENARIO(robust),
};

static void *loop(void *argument)
{
    struct worker *self = argument;
    pthread_barrier_wait(&everybody_runs);
    for (; !self->done; self->turn++) {
        job(self);
        if (job != meeting_with_locks)
            self->done = is_over();
    }
    return NULL;
}

static void make(pthread_mutex_t *mutex, int type, int robustness, int protocol)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    pthread_mutexattr_setrobust(&attributes, robustness);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    must(pthread_mutex_init(mutex, &attributes), "mutex");
}

/* Wakes the threads that wait for a signal that no other thread will send any more. */
static void let_all_go(void)
{
    for (int i = 0; i < THREADS; i++) {
        sem_post(&turns[i]);
        sem_post(&room);
        sem_post(&filled);
    }
}

static void wait_for_line(void)
{
    char c = 0;
    while (c != '\n' && read(0, &c, 1) == 1)
        continue;
}

static void make_all(void)
{
    for (int i = 0; i < LOCKS; i++) {
        make(&locks[i], PTHREAD_MUTEX_NORMAL, 0, i % 2 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
        sem_init(&sem_locks[i], 0, 1);
    }
    make(&g_recursive, PTHREAD_MUTEX_RECURSIVE, 0, PTHREAD_PRIO_NONE);
    make(&g_robust, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
    for (int i = 0; i < 2; i++)
        pthread_spin_init(&spins[i], 0);
    sem_init(&some, 0, 2);
    sem_init(&room, 0, QUEUE);
    sem_init(&filled, 0, 0);
    for (int i = 0; i < THREADS; i++)
        sem_init(&turns[i], 0, i == 0);
    pthread_barrier_init(&meeting, NULL, THREADS);
}

int main(int argc, char **argv)
{
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (size_t i = 0; argc > 1 && i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(scenarios[i].name, argv[1]) == 0)
            job = scenarios[i].run;
    if (!job)
        return 2;
    make_all();
    pthread_barrier_init(&everybody_runs, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        workers[i] =
            (struct worker){.number = i, .random = (unsigned)getpid() + (unsigned)i * 7919u};
        threads[i] = start(loop, &workers[i], NULL);
    }
    pthread_barrier_wait(&everybody_runs);
    say("ready");
    wait_for_line();
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    let_all_go();
    for (int i = 0; i < THREADS; i++)
        must(pthread_join(threads[i], NULL), "join");
    say("ok");
    return 0;
}
