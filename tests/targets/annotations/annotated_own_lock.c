/* A program that implements a lock on a futex and reports the lock to locktop. The program also
 * names locks and sets marks. Says the truth of each step, then waits for a line.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <semaphore.h>

#include "../../../native/include/locktop.h"
#include "../target.h"

enum { FREE_ROUNDS = 100, TRIES = 5, ROUNDS = 20, HOLD_MS = 10 };

/* 0 free, 1 taken, 2 taken and waited for (Drepper, Futexes Are Tricky). */
struct own_lock {
    int word;
};

static struct own_lock g_own, g_second, g_shared;
static pthread_barrier_t meeting;
static double wait_s, hold_s;
static int waiter_tid;

static int own_try(struct own_lock *lock)
{
    int none = 0;
    return __atomic_compare_exchange_n(&lock->word, &none, 1, 0, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static KEPT void own_take(struct own_lock *lock)
{
    locktop_acquire(lock);
    if (!own_try(lock))
        while (__atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE) != 0)
            syscall(SYS_futex, &lock->word, FUTEX_WAIT, 2, NULL);
    locktop_acquired(lock);
}

static KEPT void own_release(struct own_lock *lock)
{
    if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) == 2)
        syscall(SYS_futex, &lock->word, FUTEX_WAKE, 1);
    locktop_released(lock);
}

static void meet(void)
{
    pthread_barrier_wait(&meeting);
}

/* Both measure the same wait only after the other thread sleeps on the lock. */
static void until_waited_for(struct own_lock *lock)
{
    while (__atomic_load_n(&lock->word, __ATOMIC_RELAXED) != 2)
        pause_ms(1);
}

static KEPT void *waiter(void *unused)
{
    waiter_tid = own_tid();
    for (int round = 0; round < ROUNDS; round++) {
        meet();
        double before = now();
        own_take(&g_own);
        wait_s += now() - before;
        own_release(&g_own);
        meet();
    }
    meet(); /* two readers at once */
    locktop_acquire_shared(&g_shared);
    locktop_acquired_shared(&g_shared);
    meet();
    locktop_released(&g_shared);
    meet(); /* the lock that the scan reads */
    own_take(&g_own);
    own_release(&g_own);
    return unused;
}

static void rounds(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        own_take(&g_own);
        double before = now();
        meet();
        until_waited_for(&g_own);
        pause_ms(HOLD_MS);
        own_release(&g_own);
        hold_s += now() - before;
        meet();
    }
}

static void names(void)
{
    static pthread_mutex_t passing = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t *heap = malloc(sizeof *heap);
    pthread_mutex_init(heap, NULL);
    locktop_name(heap, "on the heap");
    pthread_mutex_lock(heap);
    pthread_mutex_unlock(heap);
    pthread_mutex_lock(&passing);
    pthread_mutex_unlock(&passing);
    locktop_name(&passing, "for a while");
    pthread_mutex_destroy(&passing);

    char name[64];
    snprintf(name, sizeof name, "/locktop-test-%d", (int)getpid());
    sem_t *sem = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
    if (sem == SEM_FAILED)
        must(errno, "sem_open");
    sem_unlink(name);
    sem_wait(sem);
    locktop_name(&g_own, "own \x1b[31mlock");
    errno = 77;
    locktop_mark("names are given");
    locktop_mark("a mark that is much longer than what is kept of a mark in the ring");
    check_equal("errno", errno, 77);
}

int main(void)
{
    pthread_barrier_init(&meeting, NULL, 2);
    for (int i = 0; i < FREE_ROUNDS; i++) {
        own_take(&g_own);
        own_take(&g_second);
        own_release(&g_own);
        own_release(&g_second);
    }
    g_own.word = 1;
    for (int i = 0; i < TRIES; i++)
        if (!own_try(&g_own))
            locktop_gave_up(&g_own);
    g_own.word = 0;
    names();
    pthread_t thread = start(waiter, NULL, "waiter");
    rounds();
    meet();
    locktop_acquire_shared(&g_shared);
    locktop_acquired_shared(&g_shared);
    meet();
    locktop_released(&g_shared);
    own_take(&g_own);
    meet();
    until_waited_for(&g_own);
    char text[300];
    snprintf(text, sizeof text,
             "{\"acquisitions\": %d, \"contended\": %d, \"tries\": %d, \"wait_s\": %.9f, "
             "\"hold_s\": %.9f, \"holder\": %d, \"waiter\": %d}",
             FREE_ROUNDS + 2 * ROUNDS + 1, ROUNDS, TRIES, wait_s, hold_s, own_tid(), waiter_tid);
    say(text);
    hear();
    own_release(&g_own);
    pthread_join(thread, NULL);
    return verdict();
}
