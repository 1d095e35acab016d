/* Three of six threads keep a unit of a semaphore on an error path. Then all wait for units.
 *
 * semaphore_units_leaked [two]
 *   two: three of four further threads do the same with another semaphore. */
#include <semaphore.h>

#include "../target.h"

enum { UNITS = 3, CLIENTS = 6, CALLERS = 4, ERROR_AT = 20 };
static sem_t g_slots, g_tokens;

static KEPT void borrow_connection(void)
{
    sem_wait(&g_slots);
}

static KEPT int run_query(int client, int query)
{
    borrow_connection();
    pause_ms(1);
    if (client < UNITS && query >= ERROR_AT)
        return -1; /* the unit is not given back */
    sem_post(&g_slots);
    return 0;
}

static void *serve(void *argument)
{
    for (int query = 0;; query++)
        run_query((int)(intptr_t)argument, query);
    return argument;
}

static KEPT void take_token(void)
{
    sem_wait(&g_tokens);
}

static void *call(void *argument)
{
    for (int number = 0;; number++) {
        take_token();
        pause_ms(1);
        if ((intptr_t)argument < UNITS && number == ERROR_AT)
            continue; /* the unit is not given back */
        sem_post(&g_tokens);
    }
    return argument;
}

int main(int argc, char **argv)
{
    sem_init(&g_slots, 0, UNITS);
    sem_init(&g_tokens, 0, UNITS);
    pthread_t clients[CLIENTS];
    if (argc > 1 && strcmp(argv[1], "two") == 0)
        for (intptr_t number = 0; number < CALLERS; number++)
            start(call, (void *)number, "caller");
    for (intptr_t number = 0; number < CLIENTS; number++)
        clients[number] = start(serve, (void *)number, "client");
    say("ready");
    pthread_join(clients[0], NULL);
}
