/* Threads wait for a condition. One thread wakes all of them and keeps the mutex: the woken threads
 * queue for it inside pthread_cond_wait(). Then each of them keeps the mutex for a while.
 *
 * Argument: "broadcast", "signals" (one for each waiter) or "c11" (cnd_broadcast).
 * Says "asleep" when all threads wait; at a line it wakes them and says "woken" when all of them
 * queue. At a line it goes on, and at the end says the truth.
 */
#include <stdbool.h>
#include <threads.h>

#include "../target.h"

enum { WAITERS = 6, KEEP_MS = 300, EACH_MS = 30 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static mtx_t c11_mutex;
static cnd_t c11_cond;
static bool c11, go;
static double woken_at, waited_s[WAITERS], kept_s;
static int tids[WAITERS], asleep;

static void lock(void)
{
    if (c11)
        mtx_lock(&c11_mutex);
    else
        pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    if (c11)
        mtx_unlock(&c11_mutex);
    else
        pthread_mutex_unlock(&mutex);
}

static KEPT void wait_to_be_woken(void)
{
    if (c11)
        cnd_wait(&c11_cond, &c11_mutex);
    else
        pthread_cond_wait(&cond, &mutex);
}

static void *waiter(void *argument)
{
    int *tid = argument;
    lock();
    *tid = own_tid();
    asleep++;
    while (!go)
        wait_to_be_woken();
    waited_s[tid - tids] = now() - woken_at;
    pause_ms(EACH_MS);
    unlock();
    return NULL;
}

static KEPT void keep_mutex(const char *how)
{
    lock();
    go = true;
    woken_at = now();
    if (c11)
        cnd_broadcast(&c11_cond);
    else if (how[0] == 'b')
        pthread_cond_broadcast(&cond);
    for (int i = 0; how[0] == 's' && i < WAITERS; i++)
        pthread_cond_signal(&cond);
    pause_ms(KEEP_MS);
    say("woken");
    hear();
    kept_s = now() - woken_at;
    unlock();
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "broadcast";
    pthread_t threads[WAITERS];
    c11 = how[0] == 'c';
    mtx_init(&c11_mutex, mtx_plain);
    cnd_init(&c11_cond);
    for (int i = 0; i < WAITERS; i++)
        threads[i] = start(waiter, &tids[i], "waiter");
    for (bool all = false; !all; pause_ms(1)) {
        lock();
        all = asleep == WAITERS;
        unlock();
    }
    say("asleep");
    hear();
    keep_mutex(how);
    double sum_s = 0;
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(threads[i], NULL);
        sum_s += waited_s[i];
    }
    char text[400];
    snprintf(
        text, sizeof text,
        "{\"mutex\": \"%p\", \"waiters\": %d, \"wait_s\": %.6f, \"kept_s\": %.6f, \"tid\": %d}",
        c11 ? (void *)&c11_mutex : (void *)&mutex, WAITERS, sum_s, kept_s, own_tid());
    say(text);
    hear();
    return 0;
}
