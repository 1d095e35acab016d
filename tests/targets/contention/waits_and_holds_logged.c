/* Threads take a lock in turn at two call sites and hold the lock for a while. Each thread logs
 * when it requested the lock, got it and released it. The program says the whole log, and the log
 * shows which thread made which thread wait.
 *
 * waits_and_holds_logged mutex|recursive|robust|inherit|adaptive|write|read|spin|custom|cond|many
 *   read: half of the threads read. cond: a condition wait releases the lock.
 *   spin: in each round one thread has the lock first, and works when all others ask. Else a thread
 *   on a busy machine might have all its turns while no other thread runs.
 *   many: each thread ends after its turn, and other threads start.
 */
#include <sched.h>

#include "../target.h"

#include "../../../native/include/locktop.h"

enum { THREADS = 4, TURNS = 30, MAX_TURNS = 4096 };

static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER; /* of the annotated lock */
static char own_lock;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t all_here;
static const char *kind;
static unsigned asking;         /* threads that requested the lock and do not have it */
static unsigned begun;          /* the newest round whose first thread has the lock, from 1 on */
static __thread unsigned leads; /* the round of which this thread is the first one, 0: none */

static struct turn {
    int tid, shared;
    const char *function;
    double requested, taken, given;
} book[MAX_TURNS];
static unsigned written;

static int is(const char *name)
{
    return strcmp(kind, name) == 0;
}

/* A macro: the call must be in the function that takes the lock. */
#define TAKE(shared)                                                                               \
    do {                                                                                           \
        if (is("spin")) {                                                                          \
            pthread_spin_lock(&spin);                                                              \
        } else if (is("read") && (shared)) {                                                       \
            pthread_rwlock_rdlock(&rwlock);                                                        \
        } else if (is("read") || is("write")) {                                                    \
            pthread_rwlock_wrlock(&rwlock);                                                        \
        } else if (is("custom")) {                                                                 \
            locktop_acquire(&own_lock);                                                            \
            pthread_mutex_lock(&inner);                                                            \
            locktop_acquired(&own_lock);                                                           \
        } else {                                                                                   \
            pthread_mutex_lock(&mutex);                                                            \
        }                                                                                          \
    } while (0)

static void give(void)
{
    if (is("spin")) {
        pthread_spin_unlock(&spin);
    } else if (is("read") || is("write")) {
        pthread_rwlock_unlock(&rwlock);
    } else if (is("custom")) {
        locktop_released(&own_lock);
        pthread_mutex_unlock(&inner);
    } else {
        pthread_mutex_unlock(&mutex);
    }
}

static unsigned value(const unsigned *number)
{
    return __atomic_load_n(number, __ATOMIC_ACQUIRE);
}

/* Waits for the turn of this thread in a round. */
static void begin_round(unsigned round, unsigned first)
{
    pthread_barrier_wait(&all_here);
    leads = round % THREADS == first ? round : 0;
    while (!leads && value(&begun) != round)
        sched_yield();
}

/* Lets the other threads ask for the lock that this thread has. */
static void await_others(void)
{
    if (!leads)
        return;
    __atomic_store_n(&begun, leads, __ATOMIC_RELEASE);
    while (value(&asking) != THREADS - 1)
        sched_yield();
}

static void work(unsigned *seed)
{
    await_others();
    double until = now() + 0.0005 + 0.000001 * (double)(rand_r(seed) % 2000);
    if (is("spin") || rand_r(seed) % 2)
        while (now() < until)
            continue;
    else
        pause_ms(1 + (unsigned)rand_r(seed) % 2);
}

static struct turn *next_turn(int shared)
{
    struct turn *turn = &book[__atomic_fetch_add(&written, 1, __ATOMIC_RELAXED)];
    turn->tid = own_tid();
    turn->shared = shared;
    return turn;
}

/* A condition wait releases the mutex and takes it again. The library does not see whether the
 * thread had to wait for the mutex then. */
static KEPT void wait_in_vain(struct turn *turn)
{
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    turn->given = now();
    pthread_cond_timedwait(&never, &mutex, &soon);
    struct turn *again = next_turn(0);
    again->function = "wait_in_vain";
    again->requested = again->taken = now();
    pause_ms(1);
    again->given = now();
}

static void give_written(struct turn *turn, unsigned *seed)
{
    work(seed);
    if (is("cond"))
        wait_in_vain(turn);
    else
        turn->given = now();
    give();
}

static KEPT void take_here(struct turn *turn, unsigned *seed)
{
    turn->requested = now();
    __atomic_fetch_add(&asking, 1, __ATOMIC_ACQ_REL);
    TAKE(turn->shared);
    __atomic_fetch_sub(&asking, 1, __ATOMIC_ACQ_REL);
    turn->taken = now();
    give_written(turn, seed);
}

static KEPT void take_there(struct turn *turn, unsigned *seed)
{
    turn->requested = now();
    __atomic_fetch_add(&asking, 1, __ATOMIC_ACQ_REL);
    TAKE(turn->shared);
    __atomic_fetch_sub(&asking, 1, __ATOMIC_ACQ_REL);
    turn->taken = now();
    give_written(turn, seed);
}

static void take_turn(unsigned *seed, int shared)
{
    struct turn *turn = next_turn(shared);
    int here = rand_r(seed) % 2;
    turn->function = here ? "take_here" : "take_there";
    if (here)
        take_here(turn, seed);
    else
        take_there(turn, seed);
}

static void *take_turns(void *number)
{
    unsigned seed = (unsigned)(uintptr_t)number + 1;
    pthread_barrier_wait(&all_here);
    for (unsigned i = 0; i < TURNS; i++) {
        if (is("spin"))
            begin_round(i + 1, (unsigned)(uintptr_t)number);
        take_turn(&seed, is("read") && (uintptr_t)number % 2);
        if (rand_r(&seed) % 4 == 0)
            pause_ms(1);
    }
    return NULL;
}

static void *take_one_turn(void *number)
{
    unsigned seed = (unsigned)(uintptr_t)number + 1;
    take_turn(&seed, 0);
    return NULL;
}

static void make_mutex(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (is("recursive"))
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    if (is("adaptive"))
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    if (is("robust"))
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (is("inherit"))
        must(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT), "inherit");
    must(pthread_mutex_init(&mutex, &attributes), "pthread_mutex_init");
}

static void run(void *(*run_thread)(void *), uintptr_t first)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        threads[i] = start(run_thread, (void *)(first + i), NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    kind = argc > 1 ? argv[1] : "mutex";
    make_mutex();
    pthread_spin_init(&spin, 0);
    pthread_barrier_init(&all_here, NULL, THREADS);
    if (is("many"))
        for (uintptr_t i = 0; i < TURNS; i++)
            run(take_one_turn, THREADS * i);
    else
        run(take_turns, 0);
    printf("{\"turns\": [");
    for (unsigned i = 0; i < written; i++)
        printf("%s[%d, \"%s\", %d, %.9f, %.9f, %.9f]", i ? ", " : "", book[i].tid, book[i].function,
               book[i].shared, book[i].requested, book[i].taken, book[i].given);
    puts("]}");
    fflush(stdout);
    hear();
    return 0;
}
