/* One thread holds a mutex for 100 ms at a time while three other threads want the mutex.
 *
 * The others try only while the holder has the mutex. The 100 ms begin when all of them sleep for
 * the mutex. So every acquisition of the others is contended. Says the truth about the rounds,
 * then holds the mutex once more until a line comes. The argument is the number of rounds, or
 * "at_line": then the rounds begin at a line.
 */
#include "../target.h"

enum { ROUNDS = 20, WANTERS = 3, HOLD_MS = 100 };

pthread_mutex_t g_slow_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t taken;    /* the holder has the lock */
static pthread_barrier_t all_done; /* no thread has or wants the lock */

struct figures {
    int tid;
    long acquisitions;
    double wait_s, wait_max_s, hold_s;
};
static struct figures holder, wanters[WANTERS];
static int rounds = ROUNDS;
static int wants[WANTERS]; /* the thread is about to take the mutex, and does not have it yet */

static KEPT void work_slowly(void)
{
    for (int i = 0; i < WANTERS; i++)
        while (!__atomic_load_n(&wants[i], __ATOMIC_ACQUIRE) || !is_asleep(wanters[i].tid))
            pause_ms(1);
    pause_ms(HOLD_MS);
}

static KEPT void hold_until_line(void)
{
    say("held");
    hear();
}

static KEPT void holder_takes(int last)
{
    pthread_mutex_lock(&g_slow_lock);
    double taken_at = now();
    pthread_barrier_wait(&taken);
    if (last)
        hold_until_line();
    else
        work_slowly();
    holder.acquisitions++;
    holder.hold_s += now() - taken_at;
    pthread_mutex_unlock(&g_slow_lock);
}

static KEPT void wanter_takes(struct figures *self)
{
    int *self_wants = &wants[self - wanters];
    __atomic_store_n(self_wants, 1, __ATOMIC_RELEASE);
    double before = now();
    pthread_mutex_lock(&g_slow_lock);
    double taken_at = now();
    __atomic_store_n(self_wants, 0, __ATOMIC_RELEASE);
    self->acquisitions++;
    self->wait_s += taken_at - before;
    if (taken_at - before > self->wait_max_s)
        self->wait_max_s = taken_at - before;
    pause_ms(1);
    self->hold_s += now() - taken_at;
    pthread_mutex_unlock(&g_slow_lock);
}

static void *wanter_loop(void *argument)
{
    struct figures *self = argument;
    self->tid = own_tid();
    for (int round = 0; round <= rounds; round++) {
        pthread_barrier_wait(&taken);
        wanter_takes(self);
        pthread_barrier_wait(&all_done);
    }
    return NULL;
}

static void *holder_loop(void *argument)
{
    holder.tid = own_tid();
    for (int round = 0; round < rounds; round++) {
        holder_takes(0);
        pthread_barrier_wait(&all_done);
    }
    double wait_s = 0, wait_max_s = 0, hold_s = holder.hold_s;
    char text[2000];
    int at = snprintf(text, sizeof text, "{\"holder\": %d, \"wanters\": [", holder.tid);
    for (int i = 0; i < WANTERS; i++) {
        const struct figures *one = &wanters[i];
        wait_s += one->wait_s;
        hold_s += one->hold_s;
        wait_max_s = one->wait_max_s > wait_max_s ? one->wait_max_s : wait_max_s;
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s{\"tid\": %d, \"contended\": %ld, \"wait_s\": %.9f}", i ? ", " : "",
                       one->tid, one->acquisitions, one->wait_s);
    }
    snprintf(text + at, sizeof text - (size_t)at,
             "], \"acquisitions\": %d, \"contended\": %d, \"wait_s\": %.9f, \"wait_max_s\": %.9f, "
             "\"hold_s\": %.9f}",
             rounds * (WANTERS + 1), rounds * WANTERS, wait_s, wait_max_s, hold_s);
    say(text);
    hear();
    holder_takes(1);
    pthread_barrier_wait(&all_done);
    return argument;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "at_line") == 0) {
        say("ready");
        hear();
    } else if (argc > 1) {
        rounds = atoi(argv[1]);
    }
    pthread_barrier_init(&taken, NULL, WANTERS + 1);
    pthread_barrier_init(&all_done, NULL, WANTERS + 1);
    pthread_t threads[WANTERS + 1];
    threads[0] = start(holder_loop, NULL, "holder");
    for (int i = 0; i < WANTERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "wanter-%d", i);
        threads[i + 1] = start(wanter_loop, &wanters[i], name);
    }
    for (int i = 0; i <= WANTERS; i++)
        pthread_join(threads[i], NULL);
    say("released");
    hear();
    return 0;
}
