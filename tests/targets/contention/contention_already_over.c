/* Contention that is over before the first scan. There were 50 contended acquisitions, by threads
 * that ended and by one thread that lives. Then the program says the truth and stays quiet.
 */
#include "../target.h"

enum { ROUNDS = 50 };

pthread_mutex_t g_past_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t taken, all_done;
static double wait_s;
static int wanting;

static KEPT void wanted_in_the_past(void)
{
    double before = now();
    pthread_mutex_lock(&g_past_lock);
    wait_s += now() - before;
    pthread_mutex_unlock(&g_past_lock);
}

static void *wanter(void *argument)
{
    wanting = own_tid();
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&taken);
        wanted_in_the_past();
        pthread_barrier_wait(&all_done);
    }
    return argument;
}

int main(void)
{
    pthread_barrier_init(&taken, NULL, 2);
    pthread_barrier_init(&all_done, NULL, 2);
    pthread_t thread = start(wanter, NULL, "gone");
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&g_past_lock);
        pthread_barrier_wait(&taken);
        while (!is_asleep(wanting)) /* a thread that passed the barrier does not sleep there */
            pause_ms(1);
        pause_ms(4);
        pthread_mutex_unlock(&g_past_lock);
        pthread_barrier_wait(&all_done);
    }
    pthread_join(thread, NULL);
    char text[100];
    snprintf(text, sizeof text, "{\"contended\": %d, \"wait_s\": %.9f}", ROUNDS, wait_s);
    say(text);
    hear();
    return 0;
}
