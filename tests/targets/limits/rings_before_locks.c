/* Threads that write records first, then threads that take many locks: rings_before_locks WRITERS
 * TAKERS LOCKS.
 *
 * Each writer takes and releases one lock, so that the thread has a ring at the level all. Then the
 * takers begin, one after the other; each takes its share of the LOCKS. "ready" when all is done.
 * Ends at a line.
 */
#include <stdatomic.h>

#include "../target.h"

pthread_mutex_t g_first = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *locks;
static unsigned long share;
static atomic_int done;
static int parked[2]; /* a pipe: a thread that reads it waits for no lock */

static void *takes(void *argument)
{
    pthread_mutex_t *first = argument;
    for (unsigned long i = 0; i < (first == &g_first ? 1 : share); i++) {
        pthread_mutex_lock(&first[i]);
        pthread_mutex_unlock(&first[i]);
    }
    atomic_fetch_add(&done, 1);
    char c;
    while (read(parked[0], &c, 1) > 0)
        continue;
    return NULL;
}

static void start_next(pthread_mutex_t *first, int number)
{
    start(takes, first, "crowd");
    while (atomic_load(&done) < number)
        pause_ms(1);
}

int main(int argc, char **argv)
{
    must(argc == 4 && pipe(parked) == 0 ? 0 : EINVAL, "arguments");
    int writers = atoi(argv[1]), takers = atoi(argv[2]);
    unsigned long count = strtoul(argv[3], NULL, 10);
    share = count / (unsigned long)takers;
    locks = calloc(count, sizeof *locks);
    must(locks ? 0 : ENOMEM, "calloc");
    for (int i = 0; i < writers; i++)
        start_next(&g_first, i + 1);
    for (int i = 0; i < takers; i++)
        start_next(&locks[(unsigned long)i * share], writers + i + 1);
    say("ready");
    hear();
    return 0;
}
