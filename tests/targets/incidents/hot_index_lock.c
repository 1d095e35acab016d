/* An incident: a crowd of requests waits for an index lock, whose holder reads from a slow disk.
 *
 * The disk is a pipe that nobody writes to. Says "ready" when the requests wait.
 */
#include <sched.h>

#include "../target.h"

enum { REQUESTS = 24 };

pthread_mutex_t g_index_lock = PTHREAD_MUTEX_INITIALIZER;
static int disk[2], tids[REQUESTS];

static KEPT long read_index_page(void)
{
    char page[64];
    return read(disk[0], page, sizeof page);
}

static KEPT void *rebuild_index(void *unused)
{
    must(pthread_mutex_lock(&g_index_lock), "lock");
    read_index_page();
    must(pthread_mutex_unlock(&g_index_lock), "unlock");
    return unused;
}

static KEPT void *serve_request(void *tid)
{
    *(int *)tid = own_tid();
    must(pthread_mutex_lock(&g_index_lock), "lock");
    must(pthread_mutex_unlock(&g_index_lock), "unlock");
    return NULL;
}

int main(void)
{
    must(pipe(disk) ? errno : 0, "pipe");
    start(rebuild_index, NULL, "indexer");
    while (pthread_mutex_trylock(&g_index_lock) == 0) {
        pthread_mutex_unlock(&g_index_lock);
        sched_yield();
    }
    for (int i = 0; i < REQUESTS; i++)
        start(serve_request, &tids[i], "request");
    for (int i = 0; i < REQUESTS; i++)
        while (!__atomic_load_n(&tids[i], __ATOMIC_ACQUIRE) || !is_asleep(tids[i]))
            sched_yield();
    say("ready");
    getchar(); /* until stdin has a line or ends */
    _exit(0);
}
