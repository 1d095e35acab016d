/* Threads meet at a barrier, and one thread is late. Says the truth. Then all threads but one wait
 * until a line comes.
 */
#include "../target.h"

enum { ROUNDS = 20, OTHERS = 3, LATE_MS = 10 };

pthread_barrier_t g_meeting;
static pthread_barrier_t noted;
static double wait_s[OTHERS];
static int tids[OTHERS];

static KEPT void *arrives_early(void *argument)
{
    int self = *(int *)argument;
    tids[self] = own_tid();
    for (int round = 0; round <= ROUNDS; round++) {
        double before = now();
        int result = pthread_barrier_wait(&g_meeting);
        check_equal("barrier", result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD, 1);
        if (result == 0)
            wait_s[self] += now() - before;
        if (round == ROUNDS - 1)
            pthread_barrier_wait(&noted);
    }
    return NULL;
}

int main(void)
{
    static int numbers[OTHERS];
    pthread_t threads[OTHERS];
    double waited = 0, mine = 0;
    pthread_barrier_init(&g_meeting, NULL, OTHERS + 1);
    pthread_barrier_init(&noted, NULL, OTHERS + 1);
    for (int i = 0; i < OTHERS; i++) {
        numbers[i] = i;
        threads[i] = start(arrives_early, &numbers[i], "early bird");
    }
    for (int round = 0; round < ROUNDS; round++) {
        pause_ms(LATE_MS);
        double before = now();
        int result = pthread_barrier_wait(&g_meeting);
        if (result == 0)
            mine += now() - before;
    }
    pthread_barrier_wait(&noted);
    for (int i = 0; i < OTHERS; i++)
        waited += wait_s[i];
    char text[300];
    snprintf(text, sizeof text,
             "{\"arrivals\": %d, \"contended\": %d, \"wait_s\": %.9f, \"tids\": [%d, %d, %d]}",
             ROUNDS * (OTHERS + 1), ROUNDS * OTHERS, waited + mine, tids[0], tids[1], tids[2]);
    say(text);
    hear();
    pthread_barrier_wait(&g_meeting);
    for (int i = 0; i < OTHERS; i++)
        pthread_join(threads[i], NULL);
    check_equal("destroy", pthread_barrier_destroy(&g_meeting), 0);
    return verdict();
}
