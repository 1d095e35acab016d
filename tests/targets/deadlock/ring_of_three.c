/* Three threads and three locks. Each thread holds one lock and, at a line, wants the next: a
 * deadlock. Says "ready", waits for the line, says the threads' names and tids, and never ends by
 * itself.
 */
#include "../target.h"

enum { THREADS = 3 };

pthread_mutex_t g_alpha_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_beta_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_gamma_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t everybody_runs, each_has_one, line_heard;
static int tids[THREADS];

/* A function for each of the six call sites that take a lock. */
#define ONE(number, name, first, second)                                                           \
    static KEPT void name##_takes_first(void)                                                      \
    {                                                                                              \
        pthread_mutex_lock(&first);                                                                \
    }                                                                                              \
    static KEPT void name##_wants_second(void)                                                     \
    {                                                                                              \
        pthread_mutex_lock(&second);                                                               \
    }                                                                                              \
    static void *name##_loop(void *argument)                                                       \
    {                                                                                              \
        tids[number] = own_tid();                                                                  \
        pthread_barrier_wait(&everybody_runs);                                                     \
        pthread_barrier_wait(&line_heard);                                                         \
        name##_takes_first();                                                                      \
        pthread_barrier_wait(&each_has_one);                                                       \
        name##_wants_second();                                                                     \
        return argument;                                                                           \
    }

ONE(0, alice, g_alpha_lock, g_beta_lock)
ONE(1, bob, g_beta_lock, g_gamma_lock)
ONE(2, carol, g_gamma_lock, g_alpha_lock)

int main(void)
{
    pthread_barrier_init(&everybody_runs, NULL, THREADS + 1);
    pthread_barrier_init(&line_heard, NULL, THREADS + 1);
    pthread_barrier_init(&each_has_one, NULL, THREADS + 1);
    start(alice_loop, NULL, "alice");
    start(bob_loop, NULL, "bob");
    start(carol_loop, NULL, "carol");
    pthread_barrier_wait(&everybody_runs);
    say("ready");
    hear();
    pthread_barrier_wait(&line_heard);
    pthread_barrier_wait(&each_has_one);
    char text[200];
    snprintf(text, sizeof text, "{\"alice\": %d, \"bob\": %d, \"carol\": %d}", tids[0], tids[1],
             tids[2]);
    say(text);
    hear();
    return 0;
}
