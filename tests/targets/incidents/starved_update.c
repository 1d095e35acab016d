/* An incident: readers of a reader-writer lock overlap all the time, so a writer never gets it.
 *
 * Each reader hands its turn on while it still holds the lock. Says "ready" when the writer waits.
 */
#include <sched.h>
#include <semaphore.h>

#include "../target.h"

pthread_rwlock_t g_catalog = PTHREAD_RWLOCK_INITIALIZER;
static sem_t turn[2], met[2];
static int writer_tid;

/* Looks a price up. Each reader keeps the lock until the other one reads, too. */
static KEPT void read_price(int self, int is_alone)
{
    sem_wait(&turn[self]);
    must(pthread_rwlock_rdlock(&g_catalog), "rdlock");
    if (!is_alone)
        sem_post(&met[!self]);
    pause_ms(20);
    sem_post(&turn[!self]);
    sem_wait(&met[self]);
    must(pthread_rwlock_unlock(&g_catalog), "unlock");
}

static KEPT void *query(void *number)
{
    int self = (int)(intptr_t)number;
    for (int is_alone = self == 0;; is_alone = 0)
        read_price(self, is_alone);
    return NULL;
}

/* One of four readers, if there is an argument: each leaves the lock when another one has it. */
static KEPT void read_stock(void)
{
    static int reading;
    must(pthread_rwlock_rdlock(&g_catalog), "rdlock");
    __atomic_fetch_add(&reading, 1, __ATOMIC_SEQ_CST);
    pause_ms(40);
    while (__atomic_sub_fetch(&reading, 1, __ATOMIC_SEQ_CST) == 0) {
        __atomic_fetch_add(&reading, 1, __ATOMIC_SEQ_CST);
        sched_yield();
    }
    must(pthread_rwlock_unlock(&g_catalog), "unlock");
}

static KEPT void *crowd(void *unused)
{
    for (;;)
        read_stock();
    return unused;
}

static KEPT void *update_prices(void *unused)
{
    __atomic_store_n(&writer_tid, own_tid(), __ATOMIC_RELEASE);
    must(pthread_rwlock_wrlock(&g_catalog), "wrlock");
    must(pthread_rwlock_unlock(&g_catalog), "unlock");
    return unused;
}

int main(int argc, char **argv)
{
    (void)argv;
    for (int i = 0; argc > 1 && i < 4; i++)
        start(crowd, NULL, "query");
    for (int i = 0; argc == 1 && i < 2; i++) {
        sem_init(&turn[i], 0, i == 0);
        sem_init(&met[i], 0, 0);
        start(query, (void *)(intptr_t)i, "query");
    }
    while (pthread_rwlock_trywrlock(&g_catalog) == 0) {
        pthread_rwlock_unlock(&g_catalog);
        sched_yield();
    }
    start(update_prices, NULL, "prices");
    while (!__atomic_load_n(&writer_tid, __ATOMIC_ACQUIRE) || !is_asleep(writer_tid))
        sched_yield();
    say("ready");
    getchar(); /* until stdin has a line or ends */
    _exit(0);
}
