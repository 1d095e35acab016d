/* A writer waits for a reader-writer lock that two threads read. A third thread had read it before,
 * and reads it again when the others are done: it holds nothing.
 *
 * Says {"readers": [tid, tid], "writer": tid} when the writer sleeps. */
#include "../target.h"

static pthread_rwlock_t g_catalog = PTHREAD_RWLOCK_INITIALIZER;
static volatile int tids[4];
static pthread_barrier_t begun;

static volatile int is_over; /* never, but the compiler must keep the releases */

static KEPT void sleep_on(void)
{
    while (!is_over)
        pause_ms(1000000);
}

static KEPT void *read_catalog(void *number)
{
    tids[(intptr_t)number] = own_tid();
    pthread_rwlock_rdlock(&g_catalog);
    pthread_barrier_wait(&begun);
    sleep_on();
    pthread_rwlock_unlock(&g_catalog);
    return NULL;
}

static KEPT void *read_before(void *number)
{
    tids[(intptr_t)number] = own_tid();
    pthread_rwlock_rdlock(&g_catalog);
    pthread_rwlock_unlock(&g_catalog);
    pthread_barrier_wait(&begun);
    sleep_on();
    pthread_rwlock_rdlock(&g_catalog);
    return NULL;
}

static KEPT void *update_catalog(void *number)
{
    tids[(intptr_t)number] = own_tid();
    pthread_rwlock_wrlock(&g_catalog);
    return NULL;
}

int main(void)
{
    pthread_barrier_init(&begun, NULL, 4);
    start(read_catalog, (void *)0, "reader");
    start(read_catalog, (void *)1, "reader");
    start(read_before, (void *)2, "onlooker");
    pthread_barrier_wait(&begun);
    start(update_catalog, (void *)3, "writer");
    while (!tids[3] || !is_asleep(tids[3]))
        pause_ms(1);
    char line[128];
    snprintf(line, sizeof line, "{\"readers\": [%d, %d], \"writer\": %d}", tids[0], tids[1],
             tids[3]);
    say(line);
    sleep_on();
}
