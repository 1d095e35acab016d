/* Two threads take a lock in turn, and one of them always waits. The lengths of holds and waits
 * spread over decades. Each thread measures them with its own clock, and the program says them all.
 *
 * lengths_measured mutex|write|read|spin|sem [threads]
 *   read: the waiting thread reads. threads: a new thread waits in each tenth turn. Then many
 *   threads follow, which get the blocks of the ended ones.
 */
#include "../target.h"

#include <sched.h>
#include <semaphore.h>

enum { TURNS = 150, TURNS_OF_THREAD = 10, MORE_THREADS = 200, IDLE_ROUNDS = 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t semaphore;
static pthread_mutex_t idle_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle_condition = PTHREAD_COND_INITIALIZER;
static const char *kind;

static double waits[TURNS], holds[2 * TURNS];
static unsigned turn, is_held, is_wanted, hold_count;

static int is(const char *name)
{
    return strcmp(kind, name) == 0;
}

static void take(int reads)
{
    if (is("spin"))
        pthread_spin_lock(&spin);
    else if (is("sem"))
        sem_wait(&semaphore);
    else if (is("read") && reads)
        pthread_rwlock_rdlock(&rwlock);
    else if (is("read") || is("write"))
        pthread_rwlock_wrlock(&rwlock);
    else
        pthread_mutex_lock(&mutex);
}

static void give(void)
{
    if (is("spin"))
        pthread_spin_unlock(&spin);
    else if (is("sem"))
        sem_post(&semaphore);
    else if (is("read") || is("write"))
        pthread_rwlock_unlock(&rwlock);
    else
        pthread_mutex_unlock(&mutex);
}

/* Most turns are near the median, and enough are near the 99th percentile. */
static double length_of(unsigned number)
{
    static const double lengths_us[] = {50, 2000, 300, 2000, 2000, 150, 2000, 2000, 700, 25000};
    return lengths_us[number % 10] / 1e6;
}

static void spin_for(double seconds)
{
    double until = now() + seconds;
    while (now() < until)
        continue;
}

static void await(const unsigned *flag, unsigned value)
{
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != value)
        sched_yield();
}

static void set(unsigned *flag, unsigned value)
{
    __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

static void give_after(double since, double seconds)
{
    spin_for(seconds);
    holds[hold_count++] = now() - since;
    give();
}

/* The lock is held when the thread wants it, and stays so for a while. */
static void *want(void *ends)
{
    do {
        unsigned number = turn;
        await(&is_held, number + 1);
        double requested = now();
        set(&is_wanted, number + 1);
        take(1);
        double taken = now();
        waits[number] = taken - requested;
        give_after(taken, length_of(number + 3));
        set(&turn, number + 1);
    } while (turn < TURNS && (turn % TURNS_OF_THREAD || !ends));
    return NULL;
}

static void hold_in_turns(const char *threads)
{
    pthread_t thread = 0;
    for (unsigned number = 0; number < TURNS; number++) {
        if (number == 0 || (threads && number % TURNS_OF_THREAD == 0)) {
            if (number)
                pthread_join(thread, NULL);
            thread = start(want, (void *)threads, "wants");
        }
        await(&turn, number);
        take(0);
        double taken = now();
        set(&is_held, number + 1);
        await(&is_wanted, number + 1);
        give_after(taken, length_of(number));
        await(&turn, number + 1);
    }
    pthread_join(thread, NULL);
}

static void *take_briefly(void *unused)
{
    pthread_mutex_lock(&idle_mutex);
    pthread_mutex_unlock(&idle_mutex);
    return unused;
}

/* Waits for work: they are no contention of the mutex. */
static void idle(void)
{
    pthread_mutex_lock(&idle_mutex);
    for (int i = 0; i < IDLE_ROUNDS; i++) {
        struct timespec soon;
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec = (soon.tv_nsec + 5000000) % 1000000000;
        pthread_cond_timedwait(&idle_condition, &idle_mutex, &soon);
    }
    pthread_mutex_unlock(&idle_mutex);
}

static void print(const char *name, const double *lengths, unsigned count)
{
    printf("\"%s\": [", name);
    for (unsigned i = 0; i < count; i++)
        printf("%s%.9f", i ? ", " : "", lengths[i]);
    printf("]");
}

int main(int argc, char **argv)
{
    kind = argc > 1 ? argv[1] : "mutex";
    const char *threads = argc > 2 ? argv[2] : NULL;
    pthread_spin_init(&spin, 0);
    sem_init(&semaphore, 0, 1);
    hold_in_turns(threads);
    for (int i = 0; threads && i < MORE_THREADS; i++)
        pthread_join(start(take_briefly, NULL, NULL), NULL);
    idle();
    printf("{\"tid\": %d, ", own_tid());
    print("waits", waits, TURNS);
    printf(", ");
    print("holds", holds, hold_count);
    puts("}");
    fflush(stdout);
    hear();
    return 0;
}
