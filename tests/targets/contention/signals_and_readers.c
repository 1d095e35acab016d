/* One thread posts, signals, broadcasts, reads and writes, each a number of times that it says.
 *
 * "ready"; after a line the program does so and says the truth. Nobody waits. */
#include <semaphore.h>

#include "../target.h"

enum { POSTS = 5, SIGNALS = 4, BROADCASTS = 3, READS = 6, WRITES = 2 };

sem_t g_units;
pthread_cond_t g_filled = PTHREAD_COND_INITIALIZER;
pthread_rwlock_t g_table = PTHREAD_RWLOCK_INITIALIZER;

int main(void)
{
    char line[128];
    must(sem_init(&g_units, 0, 0), "sem_init");
    say("ready");
    hear();
    for (int i = 0; i < POSTS; i++)
        sem_post(&g_units);
    for (int i = 0; i < SIGNALS; i++)
        pthread_cond_signal(&g_filled);
    for (int i = 0; i < BROADCASTS; i++)
        pthread_cond_broadcast(&g_filled);
    for (int i = 0; i < READS; i++) {
        pthread_rwlock_rdlock(&g_table);
        pthread_rwlock_unlock(&g_table);
    }
    for (int i = 0; i < WRITES; i++) {
        pthread_rwlock_wrlock(&g_table);
        pthread_rwlock_unlock(&g_table);
    }
    snprintf(line, sizeof line,
             "{\"tid\": %d, \"posts\": %d, \"signals\": %d, \"broadcasts\": %d, \"reads\": %d,"
             " \"writes\": %d}",
             own_tid(), POSTS, SIGNALS, BROADCASTS, READS, WRITES);
    say(line);
    hear();
    return 0;
}
