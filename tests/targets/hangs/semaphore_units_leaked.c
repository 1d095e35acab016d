/* Three of six threads keep a unit of a semaphore on an error path. Then all wait for units. */
#include <semaphore.h>

#include "../target.h"

enum { UNITS = 3, CLIENTS = 6, ERROR_AT = 20 };
static sem_t g_slots;

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

int main(void)
{
    sem_init(&g_slots, 0, UNITS);
    pthread_t clients[CLIENTS];
    for (intptr_t number = 0; number < CLIENTS; number++)
        clients[number] = start(serve, (void *)number, "client");
    say("ready");
    pthread_join(clients[0], NULL);
}
