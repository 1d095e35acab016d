/* Threads fight without end for a few locks of three kinds. Meanwhile other threads start and end,
 * and the process forks children. Some children execute a program, some continue with locks and
 * threads of their own, some are killed.
 *
 * Says "ready" when all threads run. At a line the program stops and says the truth. The truth is
 * how often each lock was taken, and the numbers of threads and children. Then the program waits
 * for the end of stdin.
 */
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "../target.h"

enum { FIGHTERS = 6, MUTEXES = 48, BATCH = 24, EACH = 40, CHILD_THREADS = 2, YIELD_EVERY = 4 };

struct counted {
    pthread_mutex_t lock;
    unsigned long taken;
};
static struct counted table[MUTEXES];
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static pthread_mutex_t child_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_ulong rwlock_taken, semaphore_taken, threads, children, bad_children;
static unsigned long child_taken;
static atomic_int stop;

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static KEPT void mutex(unsigned random)
{
    struct counted *one = &table[random % MUTEXES];
    pthread_mutex_lock(&one->lock);
    one->taken++;
    if (random / MUTEXES % YIELD_EVERY == 0)
        sched_yield(); /* so that the other threads meet the held lock */
    pthread_mutex_unlock(&one->lock);
}

static KEPT void reader_writer(unsigned random)
{
    if (random % 8 == 0)
        pthread_rwlock_wrlock(&rwlock);
    else
        pthread_rwlock_rdlock(&rwlock);
    atomic_fetch_add(&rwlock_taken, 1);
    pthread_rwlock_unlock(&rwlock);
}

static KEPT void one_of_two(void)
{
    while (sem_wait(&semaphore) != 0)
        continue;
    atomic_fetch_add(&semaphore_taken, 1);
    sem_post(&semaphore);
}

static void turn(unsigned *state)
{
    unsigned random = next_random(state);
    mutex(random);
    if (random % 16 == 0)
        reader_writer(random);
    else if (random % 16 == 1)
        one_of_two();
}

static void *fight(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        turn(&state);
    return NULL;
}

/* With its own mutex, at an address that other threads' mutexes had before. */
static void *live_shortly(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    pthread_mutex_t own;
    pthread_mutex_init(&own, NULL);
    for (int i = 0; i < EACH; i++) {
        pthread_mutex_lock(&own);
        turn(&state);
        pthread_mutex_unlock(&own);
    }
    pthread_mutex_destroy(&own);
    return NULL;
}

static void *bear_threads(void *argument)
{
    pthread_t batch[BATCH];
    for (uintptr_t born = 0; !atomic_load(&stop); born += BATCH) {
        for (int i = 0; i < BATCH; i++)
            batch[i] = start(live_shortly, (void *)(born + (uintptr_t)i), NULL);
        for (int i = 0; i < BATCH; i++)
            pthread_join(batch[i], NULL);
        atomic_fetch_add(&threads, BATCH);
    }
    return argument;
}

static void *in_child(void *argument)
{
    for (int i = 0; i < EACH; i++) {
        pthread_mutex_lock(&child_lock);
        child_taken++;
        sched_yield();
        pthread_mutex_unlock(&child_lock);
    }
    return argument;
}

static void go_on_in_child(void)
{
    pthread_t born[CHILD_THREADS];
    for (int i = 0; i < CHILD_THREADS; i++)
        born[i] = start(in_child, NULL, NULL);
    for (int i = 0; i < CHILD_THREADS; i++)
        pthread_join(born[i], NULL);
}

static void child(unsigned long number)
{
    if (number % 3 == 0) {
        execlp("true", "true", NULL);
        _exit(9);
    }
    go_on_in_child();
    if (number % 3 == 1)
        kill(getpid(), SIGKILL);
    _exit(child_taken != CHILD_THREADS * EACH);
}

static void bear_child(unsigned long number)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        child(number);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    bool good = number % 3 == 1 ? killed : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    atomic_fetch_add(&children, 1);
    atomic_fetch_add(&bad_children, !good);
}

/* The last child executes a program, which removes the files of the killed children. */
static void *bear_children(void *argument)
{
    for (unsigned long number = 0; !atomic_load(&stop); number++)
        bear_child(number);
    bear_child(0);
    return argument;
}

static void say_truth(void)
{
    static char text[MUTEXES * 64 + 400];
    int at = snprintf(text, sizeof text,
                      "{\"threads\": %lu, \"children\": %lu, \"bad_children\": %lu,"
                      " \"locks\": {\"%p\": %lu, \"%p\": %lu",
                      threads, children, bad_children, (void *)&rwlock, rwlock_taken,
                      (void *)&semaphore, semaphore_taken);
    for (int i = 0; i < MUTEXES; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, ", \"%p\": %lu", (void *)&table[i].lock,
                       table[i].taken);
    snprintf(text + at, sizeof text - (size_t)at, "}}");
    say(text);
}

int main(void)
{
    pthread_t all[FIGHTERS + 2];
    for (int i = 0; i < MUTEXES; i++)
        pthread_mutex_init(&table[i].lock, NULL);
    must(sem_init(&semaphore, 0, 2) ? errno : 0, "sem_init");
    for (uintptr_t i = 0; i < FIGHTERS; i++)
        all[i] = start(fight, (void *)(i * 7919 + 1), NULL);
    all[FIGHTERS] = start(bear_threads, NULL, NULL);
    all[FIGHTERS + 1] = start(bear_children, NULL, NULL);
    say("ready");
    hear();
    atomic_store(&stop, 1);
    for (int i = 0; i < FIGHTERS + 2; i++)
        pthread_join(all[i], NULL);
    say_truth();
    hear();
    return 0;
}
