/* Two threads pass a turn to each other with semaphores. Says the truth and leaves one thread in a
 * wait.
 */
#include <semaphore.h>

#include "../target.h"

enum { ROUNDS = 100, EMPTY_TRIES = 7 };

sem_t g_ping, g_pong, g_never;
static double wait_s;

static KEPT void pong_waits(void)
{
    double before = now();
    while (sem_wait(&g_pong) != 0)
        continue;
    wait_s += now() - before;
}

static void *player(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        pong_waits();
        pause_ms(1);
        sem_post(&g_ping);
    }
    while (sem_wait(&g_never) != 0)
        continue;
    return argument;
}

int main(void)
{
    sem_init(&g_ping, 0, 0);
    sem_init(&g_pong, 0, 0);
    sem_init(&g_never, 0, 0);
    start(player, NULL, "player");
    for (int i = 0; i < ROUNDS; i++) {
        pause_ms(1);
        sem_post(&g_pong);
        while (sem_wait(&g_ping) != 0)
            continue;
    }
    for (int i = 0; i < EMPTY_TRIES; i++)
        if (sem_trywait(&g_ping) == 0 || errno != EAGAIN)
            return 3;
    char text[200];
    snprintf(
        text, sizeof text,
        "{\"rounds\": %d, \"tries\": %d, \"wait_s\": %.9f, \"pong\": \"%p\", \"ping\": \"%p\"}",
        ROUNDS, EMPTY_TRIES, wait_s, (void *)&g_pong, (void *)&g_ping);
    say(text);
    hear();
    return 0;
}
