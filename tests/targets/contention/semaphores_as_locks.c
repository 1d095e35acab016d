/* The main thread takes a semaphore of one unit, and the last of two units of another, and posts
 * each while a thread waits for it. The thread posts a third semaphore for work, of which it takes
 * a unit itself, too. With an argument, begins at a line. Says once between which bounds the waits
 * behind its holds were, in seconds.
 */
#include <semaphore.h>

#include "../target.h"

enum { ROUNDS = 5, HOLD_MS = 40 };

struct bounds {
    double least, most;
};

sem_t g_lock, g_slots, g_work;
static sem_t *volatile wanted;
static volatile double wanted_at;
static volatile int waiter_tid;

static KEPT void take(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        continue;
}

static void *want(void *argument)
{
    waiter_tid = own_tid();
    for (;;) {
        while (!wanted)
            pause_ms(1);
        sem_t *semaphore = wanted;
        wanted_at = now();
        take(semaphore);
        if (semaphore != &g_work)
            sem_post(semaphore);
        wanted = NULL;
    }
    return argument;
}

/* Until the waiter has waited for a while. Posts, and returns when the waiter is done. */
static KEPT void post_while_wanted(sem_t *semaphore, struct bounds *bounds)
{
    wanted_at = 0;
    wanted = semaphore;
    while (wanted_at == 0 || !is_asleep(waiter_tid))
        pause_ms(1);
    double slept = now();
    pause_ms(HOLD_MS);
    bounds->least += now() - slept;
    sem_post(semaphore);
    bounds->most += now() - wanted_at;
    while (wanted)
        pause_ms(1);
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1)
        hear();
    struct bounds of_lock = {0}, of_slots = {0}, of_work = {0};
    sem_init(&g_lock, 0, 1);
    sem_init(&g_slots, 0, 2);
    sem_init(&g_work, 0, 0);
    start(want, NULL, "waiter");
    while (!waiter_tid)
        pause_ms(1);
    take(&g_slots);
    for (int i = 0; i < ROUNDS; i++) {
        take(&g_lock);
        post_while_wanted(&g_lock, &of_lock);
        take(&g_slots);
        post_while_wanted(&g_slots, &of_slots);
        sem_post(&g_work);
        take(&g_work);
        post_while_wanted(&g_work, &of_work);
    }
    char text[300];
    snprintf(text, sizeof text,
             "{\"holder\": %d, \"waiter\": %d, \"g_lock\": [%.9f, %.9f], \"g_slots\": [%.9f, %.9f],"
             " \"g_work\": [%.9f, %.9f]}",
             own_tid(), waiter_tid, of_lock.least, of_lock.most, of_slots.least, of_slots.most,
             of_work.least, of_work.most);
    say(text);
    hear();
    return 0;
}
