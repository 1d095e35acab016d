/* Measures a contended wait 13 frames deep. */
#include "deep_wait.h"

#include "waiters.h"

/* Numbers of calls: with the frames before and after them the stack has 13 frames. */
enum { WAIT_CALLS = 9, TIMEOUT_CALLS = 6 };
enum { WAITS_MAX = 1 << 18, WARM_UP_WAITS = 200, HOLD_STEPS = 5000 };
enum { NOTICE_TICKS = 5000, STEP_TICKS = 10 };

static _Alignas(CACHE_LINE) pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(CACHE_LINE) atomic_bool held, over;
static _Alignas(CACHE_LINE) _Atomic uint64_t call_at; /* ticks */
static double before[WAITS_MAX], after[WAITS_MAX];
static _Alignas(CACHE_LINE) unsigned waits;

static void wait_until(uint64_t ticks)
{
    while (ticks_now() < ticks)
        pause_a_little();
}

/* Looks at the mutex once, so as not to take its cache line from the waiter again and again. If a
 * thread waited, the next look is earlier, else later. So the delay comes to the moment by which
 * half of all waiters wait. */
static void check_once(uint64_t called, uint64_t *delay)
{
    wait_until(called + *delay);
    if (!somebody_waits_for(&mutex))
        *delay += STEP_TICKS;
    else if (*delay > STEP_TICKS)
        *delay -= STEP_TICKS;
    before[waits] = (double)*delay;
}

/* Holds the mutex until a thread sleeps for it. */
static void *hold(void *argument)
{
    uint64_t delay = 0, called = 0, next;
    stay_on_cpu(1);
    for (;;) {
        pthread_mutex_lock(&mutex);
        atomic_store(&held, true);
        while ((next = atomic_load(&call_at)) == called && !atomic_load(&over))
            wait_a_little();
        if (next == called)
            break;
        called = next;
        check_once(called, &delay);
        while (!somebody_waits_for(&mutex))
            wait_a_little();
        work(0, HOLD_STEPS);
        pthread_mutex_unlock(&mutex);
        while (atomic_load(&held))
            wait_a_little();
    }
    pthread_mutex_unlock(&mutex);
    return argument;
}

static void wait_timed(void)
{
    uint64_t start = ticks_now() + NOTICE_TICKS;
    atomic_store(&call_at, start);
    wait_until(start);
    pthread_mutex_lock(&mutex);
    uint64_t taken = ticks_now();
    pthread_mutex_unlock(&mutex);
    after[waits] = (double)(ticks_now() - taken);
}

/* A call for each frame: neither inlined nor turned into a jump. */
static __attribute__((noinline, noclone)) void call_deep(int calls, void (*last)(void))
{
    if (calls > 1)
        call_deep(calls - 1, last);
    else
        last();
    __asm__ volatile("");
}

static void *wait_often(void *argument)
{
    uint64_t duration = *(uint64_t *)argument, start = 0;
    stay_on_cpu(0);
    for (unsigned all = 0;
         waits < WAITS_MAX && (all <= WARM_UP_WAITS || moment().ns - start < duration); all++) {
        if (all == WARM_UP_WAITS) {
            start = moment().ns;
            waits = 0;
        }
        while (!atomic_load(&held))
            wait_a_little();
        call_deep(WAIT_CALLS, wait_timed);
        waits++;
        atomic_store(&held, false);
    }
    atomic_store(&over, true);
    return NULL;
}

struct cost measure_deep_wait(double seconds)
{
    uint64_t duration = (uint64_t)(seconds * 1e9);
    pthread_t holder = start_thread(hold, NULL);
    struct moment begin = moment();
    pthread_join(start_thread(wait_often, &duration), NULL);
    struct moment end = moment();
    pthread_join(holder, NULL);
    double ticks = quantile(before, waits, 0.5) + quantile(after, waits, 0.5);
    return (struct cost){ticks * (double)(end.ns - begin.ns) / (double)(end.ticks - begin.ticks),
                         ticks};
}

static void give_up(void)
{
    static const struct timespec before_all = {.tv_sec = -1}; /* libc does not ask the kernel */
    pthread_mutex_timedlock(&mutex, &before_all);
    __asm__ volatile(""); /* a call, not a jump */
}

void deep_timeout_set_up(void)
{
    pthread_mutex_lock(&mutex);
}

void deep_timeout_batch(unsigned n)
{
    while (n--)
        call_deep(TIMEOUT_CALLS, give_up);
}

static void init_and_destroy(void)
{
    pthread_mutex_t fresh;
    pthread_mutex_init(&fresh, NULL);
    pthread_mutex_destroy(&fresh);
    __asm__ volatile("");
}

void deep_init_batch(unsigned n)
{
    while (n--)
        call_deep(TIMEOUT_CALLS, init_and_destroy);
}
