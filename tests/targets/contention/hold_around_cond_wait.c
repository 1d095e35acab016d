/* A thread holds a mutex for a moment before a condition wait and for longer after the wait. Says
 * the total hold time that the program measured.
 */
#include "../target.h"

enum { ROUNDS = 200 };
static pthread_mutex_t g_cond_held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void spin_us(double us)
{
    double until = now() + us / 1e6;
    while (now() < until)
        ;
}

int main(void)
{
    struct timespec past = {0, 0};
    double held = 0;
    char text[64];
    for (int i = 0; i < ROUNDS; i++) {
        must(pthread_mutex_lock(&g_cond_held), "lock");
        double taken = now();
        spin_us(20);
        held += now() - taken;
        check_equal("wait", pthread_cond_timedwait(&condition, &g_cond_held, &past), ETIMEDOUT);
        taken = now();
        spin_us(1000);
        held += now() - taken;
        must(pthread_mutex_unlock(&g_cond_held), "unlock");
    }
    snprintf(text, sizeof text, "{\"hold_s\": %.6f, \"rounds\": %d}", held, ROUNDS);
    say(text);
    hear();
    return 0;
}
