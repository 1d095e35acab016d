/* Two threads take turns with a semaphore of one unit. Each keeps the unit until the other one
 * waits for it, and for a while more. So each turn but the first begins with a wait. The last one
 * ends without a waiter. Begins at a line. Says how long each thread held the unit in the turns
 * between these, in seconds between two bounds. Ends at a line.
 */
#include <semaphore.h>

#include "../target.h"

enum { TURNS = 11, HOLD_MS = 20 };

struct holder {
    volatile int tid, wants, is_done;
    double least, most;
};

sem_t g_turn;
static struct holder holders[2];
static volatile int turns;
static double posted_at;

static KEPT void take_turn(struct holder *holder)
{
    holder->wants = 1;
    while (sem_wait(&g_turn) != 0)
        continue;
    holder->wants = 0;
}

static KEPT void hold_until_wanted(struct holder *other)
{
    while (!other->wants || !is_asleep(other->tid))
        pause_ms(1);
    pause_ms(HOLD_MS);
}

static void *take_turns(void *argument)
{
    struct holder *own = argument, *other = &holders[own == holders];
    int turn;
    own->tid = own_tid();
    do {
        take_turn(own);
        double got = now(), others_post = posted_at;
        turn = turns++;
        if (turn < TURNS - 1)
            hold_until_wanted(other);
        double end = posted_at = now();
        sem_post(&g_turn);
        double posted = now();
        if (turn > 0 && turn < TURNS - 1) {
            own->least += end - got;
            own->most += posted - others_post;
        }
        while (turn < TURNS - 1 && turns == turn + 1)
            pause_ms(1); /* else this thread may be faster than the one that it woke */
    } while (turn < TURNS - 2);
    own->is_done = 1;
    for (;;)
        pause_ms(1000);
    return NULL;
}

int main(void)
{
    char text[200];
    hear();
    sem_init(&g_turn, 0, 1);
    start(take_turns, &holders[0], "first");
    start(take_turns, &holders[1], "second");
    while (!holders[0].is_done || !holders[1].is_done)
        pause_ms(1);
    snprintf(text, sizeof text, "{\"first\": [%d, %.9f, %.9f], \"second\": [%d, %.9f, %.9f]}",
             holders[0].tid, holders[0].least, holders[0].most, holders[1].tid, holders[1].least,
             holders[1].most);
    say(text);
    hear();
    return 0;
}
