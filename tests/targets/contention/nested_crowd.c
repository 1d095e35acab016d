/* Many threads take several of many reader-writer locks at once, each in the order of the array. So
 * holders wait themselves, and the chains of their waits are very many. After enough rounds the
 * threads stop with no lock held.
 */
#include "../target.h"

enum { THREADS = 32, LOCKS = 64, DEPTH = 4, ROUNDS = 150 };

static pthread_rwlock_t locks[LOCKS];

static KEPT void nest(unsigned *seed, int from, int depth)
{
    if (depth == 0) {
        usleep(200);
        return;
    }
    int at = from + (int)((*seed = *seed * 1103515245 + 12345) >> 16) % (LOCKS / DEPTH) + 1;
    if ((*seed >> 8) % 4)
        must(pthread_rwlock_wrlock(&locks[at % LOCKS]), "wrlock");
    else
        must(pthread_rwlock_rdlock(&locks[at % LOCKS]), "rdlock");
    nest(seed, at, depth - 1);
    must(pthread_rwlock_unlock(&locks[at % LOCKS]), "unlock");
}

static KEPT void *nests(void *argument)
{
    unsigned seed = *(unsigned *)argument;
    for (int round = 0; round < ROUNDS; round++)
        nest(&seed, -1, DEPTH);
    return NULL;
}

int main(void)
{
    static unsigned seeds[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < LOCKS; i++)
        must(pthread_rwlock_init(&locks[i], NULL), "init");
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = (unsigned)i * 7919 + 1;
        threads[i] = start(nests, &seeds[i], "nested");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    say("ready");
    hear();
    return verdict();
}
