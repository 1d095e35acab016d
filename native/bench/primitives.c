/* The table of all measured operations. */
#include "primitives.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include "deep_wait.h"
#include "locktop.h"
#include "waiters.h"

/* Without work there is hardly a fight. The thread that has the lock gets it again, thousands of
 * times in a row. Then the figure is that of one thread, with more noise. */
struct fight_work fight_work = {.with = 32, .without = 64};

static _Alignas(CACHE_LINE) uint64_t guarded;

/* `take` and `give` stand in both loops: a call through a pointer would be measured too. `own` is
 * the thread's own number; `inside` is the number that the thread changes while it has the lock. */
#define LOCK(name, inside, take, give)                                                             \
    static void name##_batch(unsigned n)                                                           \
    {                                                                                              \
        uint64_t own = 0;                                                                          \
        for (; n; n--, own++) {                                                                    \
            take;                                                                                  \
            give;                                                                                  \
        }                                                                                          \
    }                                                                                              \
    static void name##_fight(struct fighter *self)                                                 \
    {                                                                                              \
        const struct fight_work steps = fight_work;                                                \
        uint64_t own = 0;                                                                          \
        do { /* at least once, however late the thread begins */                                   \
            take;                                                                                  \
            inside = work(inside, steps.with);                                                     \
            give;                                                                                  \
            own = work(own, steps.without);                                                        \
            self->done++;                                                                          \
        } while (!fight_is_over());                                                                \
    }

static void check(int error)
{
    if (!error)
        return;
    fprintf(stderr, "locktop-bench: cannot make a lock: %s\n", strerror(error));
    exit(1);
}

/* ---- mutexes ---- */

static _Alignas(CACHE_LINE) pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutexattr_t attributes;

#define MUTEX_SET_UP(name, trait, value)                                                           \
    static void name##_set_up(void)                                                                \
    {                                                                                              \
        check(pthread_mutexattr_set##trait(&attributes, PTHREAD_##value));                         \
        check(pthread_mutex_init(&mutex, &attributes));                                            \
    }

MUTEX_SET_UP(recursive, type, MUTEX_RECURSIVE)
MUTEX_SET_UP(errorcheck, type, MUTEX_ERRORCHECK)
MUTEX_SET_UP(robust, robust, MUTEX_ROBUST)
MUTEX_SET_UP(inherit, protocol, PRIO_INHERIT)
MUTEX_SET_UP(shared, pshared, PROCESS_SHARED)

LOCK(mutex, guarded, pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex))

static _Alignas(CACHE_LINE) pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER;

static void nested_batch(unsigned n)
{
    pthread_mutex_lock(&outer);
    while (n--) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_unlock(&outer);
}

LOCK(trylock, own, bool got = !pthread_mutex_trylock(&mutex), if (got) pthread_mutex_unlock(&mutex))

enum { HUNDRED = 100, MAX_GAP = 256 };
static pthread_mutex_t *hundred[HUNDRED];

/* The mutexes lie in objects of different sizes, as on a program's heap. */
static void hundred_set_up(void)
{
    uint64_t random = (uint64_t)(uintptr_t)&random;
    for (int i = 0; i < HUNDRED; i++) {
        random = work(random, 1);
        hundred[i] = malloc(sizeof(pthread_mutex_t) + (random >> 32) % MAX_GAP);
        check(hundred[i] ? pthread_mutex_init(hundred[i], NULL) : ENOMEM);
    }
}

LOCK(hundred, own, pthread_mutex_t *member = hundred[own % HUNDRED];
     pthread_mutex_lock(member), pthread_mutex_unlock(member))

/* A mutex that lives for a moment and is never used. */
static void init_batch(unsigned n)
{
    for (; n; n--) {
        pthread_mutex_t fresh;
        pthread_mutex_init(&fresh, NULL);
        pthread_mutex_destroy(&fresh);
    }
}

/* ---- other locks ---- */

static _Alignas(CACHE_LINE) pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
LOCK(read, own, pthread_rwlock_rdlock(&rwlock), pthread_rwlock_unlock(&rwlock))
LOCK(write, guarded, pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock))

static _Alignas(CACHE_LINE) pthread_spinlock_t spin;

static void spin_set_up(void)
{
    check(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
}

LOCK(spin, guarded, pthread_spin_lock(&spin), pthread_spin_unlock(&spin))

static _Alignas(CACHE_LINE) sem_t semaphore;

static void semaphore_set_up(void)
{
    sem_init(&semaphore, 0, 1);
}

LOCK(semaphore, guarded, sem_wait(&semaphore), sem_post(&semaphore))

static _Alignas(CACHE_LINE) mtx_t c11;

/* glibc has these functions since 2.28; the program also starts with an older one. */
static int (*c11_init)(mtx_t *, int);
static int (*c11_lock)(mtx_t *);
static int (*c11_unlock)(mtx_t *);

static bool c11_is_there(void)
{
    c11_init = (int (*)(mtx_t *, int))dlsym(RTLD_DEFAULT, "mtx_init");
    c11_lock = (int (*)(mtx_t *))dlsym(RTLD_DEFAULT, "mtx_lock");
    c11_unlock = (int (*)(mtx_t *))dlsym(RTLD_DEFAULT, "mtx_unlock");
    return c11_init && c11_lock && c11_unlock;
}

static void c11_set_up(void)
{
    check(c11_init(&c11, mtx_plain) == thrd_success ? 0 : ENOMEM);
}

LOCK(c11, guarded, c11_lock(&c11), c11_unlock(&c11))

/* A lock of the program's own, which announces each attempt, or only attempts that have to wait. */
static _Alignas(CACHE_LINE) atomic_bool custom;
enum { TRIES_BEFORE_YIELD = 100 };

static inline bool custom_try(void)
{
    return !atomic_exchange_explicit(&custom, true, memory_order_acquire);
}

static inline void custom_take(bool announced)
{
    if (announced)
        locktop_acquire(&custom);
    for (int tries = 1; !custom_try(); tries++) {
        if (!announced)
            locktop_acquire(&custom);
        announced = true;
        if (tries % TRIES_BEFORE_YIELD == 0)
            sched_yield();
        else
            pause_a_little();
    }
    locktop_acquired(&custom);
}

static inline void custom_give(void)
{
    atomic_store_explicit(&custom, false, memory_order_release);
    locktop_released(&custom);
}

LOCK(custom, guarded, custom_take(true), custom_give())
LOCK(custom_waits, guarded, custom_take(false), custom_give())

/* ---- other operations, in one thread ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void nothing(void)
{
}

static void once_batch(unsigned n)
{
    while (n--)
        pthread_once(&once, nothing);
}

static void *no_thread(void *argument)
{
    return argument;
}

static void thread_batch(unsigned n)
{
    while (n--)
        pthread_join(start_thread(no_thread, NULL), NULL);
}

static _Alignas(CACHE_LINE) atomic_int word;

static void futex(int operation, int value)
{
    syscall(SYS_futex, &word, operation, value, NULL, NULL, 0);
}

static void futex_wake_batch(unsigned n)
{
    while (n--)
        futex(FUTEX_WAKE_PRIVATE, 1);
}

static void futex_refused_batch(unsigned n)
{
    while (n--)
        futex(FUTEX_WAIT_PRIVATE, 1); /* the word is 0: EAGAIN */
}

/* ---- two threads in turns ---- */

static void futex_turn(int side)
{
    while (atomic_load(&word) != side)
        futex(FUTEX_WAIT_PRIVATE, !side);
    atomic_store(&word, !side);
    futex(FUTEX_WAKE_PRIVATE, 1);
}

static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int whose_turn;

static void cond_turn(int side)
{
    pthread_mutex_lock(&mutex);
    while (whose_turn != side)
        pthread_cond_wait(&turned, &mutex);
    whose_turn = !side;
    pthread_cond_signal(&turned);
    pthread_mutex_unlock(&mutex);
}

static void signal_batch(unsigned n)
{
    while (n--)
        pthread_cond_signal(&turned);
}

static sem_t of_side[2];

static void semaphore_turn_set_up(void)
{
    sem_init(&of_side[0], 0, 1);
    sem_init(&of_side[1], 0, 0);
}

static void semaphore_turn(int side)
{
    sem_wait(&of_side[side]);
    sem_post(&of_side[!side]);
}

static pthread_barrier_t barrier;

static void barrier_set_up(void)
{
    check(pthread_barrier_init(&barrier, NULL, 2));
}

static void barrier_turn(int side)
{
    (void)side;
    pthread_barrier_wait(&barrier);
}

/* ---- all of them ---- */

#define BOTH(name) .batch = name##_batch, .fight = name##_fight

const struct primitive primitives[] = {
    {"mutex", "plain mutex: lock, unlock", BOTH(mutex)},
    {"nested", "plain mutex, while another one is held: lock, unlock", .batch = nested_batch},
    {"recursive", "recursive mutex: lock, unlock", recursive_set_up, BOTH(mutex)},
    {"errorcheck", "error-checking mutex: lock, unlock", errorcheck_set_up, BOTH(mutex)},
    {"robust", "robust mutex: lock, unlock", robust_set_up, BOTH(mutex)},
    {"inherit", "priority-inheriting mutex: lock, unlock", inherit_set_up, BOTH(mutex)},
    {"shared", "process-shared mutex: lock, unlock", shared_set_up, BOTH(mutex)},
    {"hundred", "one of 100 mutexes on the heap: lock, unlock", hundred_set_up, BOTH(hundred)},
    {"init", "plain mutex: init, destroy", .batch = init_batch},
    {"deep-init", "plain mutex: init, destroy, 13 frames deep", .batch = deep_init_batch},
    {"trylock", "plain mutex: trylock, unlock if it was free", BOTH(trylock)},
    {"mtx", "C11 mutex: lock, unlock", c11_set_up, BOTH(c11), .is_there = c11_is_there},
    {"read", "reader-writer lock: lock for reading, unlock", BOTH(read)},
    {"write", "reader-writer lock: lock for writing, unlock", BOTH(write)},
    {"spin", "spin lock: lock, unlock", spin_set_up, BOTH(spin)},
    {"sem", "semaphore: wait, post", semaphore_set_up, BOTH(semaphore)},
    {"custom", "custom lock (locktop.h) that tells of each attempt: lock, unlock", BOTH(custom)},
    {"custom-waits", "custom lock (locktop.h) that tells of waits only: lock, unlock",
     BOTH(custom_waits)},
    {"sem-turns", "semaphores: two threads take a turn each", semaphore_turn_set_up,
     .turn = semaphore_turn},
    {"cond-turns", "condition: two threads take a turn each", .turn = cond_turn},
    {"signal", "condition: signal while nobody waits", .batch = signal_batch},
    {"futex-turns", "syscall(SYS_futex): two threads take a turn each", .turn = futex_turn},
    {"futex-wake", "syscall(SYS_futex): wake while nobody waits", .batch = futex_wake_batch},
    {"futex-refused", "syscall(SYS_futex): a wait refused with EAGAIN",
     .batch = futex_refused_batch},
    {"barrier", "barrier: two threads meet", barrier_set_up, .turn = barrier_turn},
    {"once", "pthread_once: done already", .batch = once_batch},
    {"thread", "thread: create, join", .batch = thread_batch},
    {"deep-wait", "plain mutex: a contended wait, 13 frames deep, without the sleep",
     .measure_two = measure_deep_wait},
    {"deep-timeout", "plain mutex: timedlock gives up at once, 13 frames deep", deep_timeout_set_up,
     .batch = deep_timeout_batch},
};
const unsigned primitive_count = sizeof primitives / sizeof *primitives;

bool can_run_with(const struct primitive *primitive, unsigned threads)
{
    if (primitive->is_there && !primitive->is_there())
        return false;
    bool at_once =
        has_two_cpus() && (primitive->fight || (threads == FEW && primitive->measure_two));
    switch (threads) {
    case 1: return primitive->batch;
    case FEW: return primitive->turn || at_once;
    case MANY: return at_once;
    default: return false;
    }
}

struct cost measure(const struct primitive *primitive, unsigned threads, double seconds)
{
    pthread_mutexattr_init(&attributes);
    if (primitive->set_up)
        primitive->set_up();
    if (threads == 1)
        return measure_batches(primitive->batch, seconds);
    if (primitive->fight)
        return measure_fight(primitive->fight, threads, seconds);
    if (primitive->turn)
        return measure_turns(primitive->turn, seconds);
    return primitive->measure_two(seconds);
}
