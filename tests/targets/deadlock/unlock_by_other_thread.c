/* Mutexes as signals: one thread locks and another thread unlocks. POSIX leaves that undefined;
 * programs do it all the same, and glibc permits it. First g_past_lock goes from thread to thread.
 * Then a thread locks g_turn_lock twice. The second call returns only after a line, when another
 * thread unlocks.
 */
#include "../target.h"

pthread_mutex_t g_past_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t taken, given;

static KEPT void wait_for_turn(void)
{
    pthread_mutex_lock(&g_turn_lock); /* until another thread unlocks the mutex */
}

static void *waiter(void *argument)
{
    pthread_mutex_lock(&g_past_lock);
    pthread_barrier_wait(&taken);
    pthread_barrier_wait(&given);
    pthread_mutex_lock(&g_turn_lock);
    char text[40];
    snprintf(text, sizeof text, "{\"waiter\": %d}", own_tid());
    say(text);
    wait_for_turn();
    say("had its turn");
    return argument;
}

int main(void)
{
    pthread_barrier_init(&taken, NULL, 2);
    pthread_barrier_init(&given, NULL, 2);
    pthread_t thread = start(waiter, NULL, "waiter");
    pthread_barrier_wait(&taken);
    pthread_mutex_unlock(&g_past_lock);
    pthread_barrier_wait(&given);
    hear();
    pthread_mutex_unlock(&g_turn_lock);
    pthread_join(thread, NULL);
    hear();
    return 0;
}
