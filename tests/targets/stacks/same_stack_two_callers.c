/* Two callers take turns. Each caller reaches the same call at the same stack address. The return
 * address of the other caller is still in memory that no code has overwritten. Says how often each
 * caller called, {"by_left": 500, "by_right": 400}, then how often stacks were unwound if
 * unwind_counter.c is loaded. Ends with stdin.
 */
#include <alloca.h>

#include "../target.h"

enum { TURNS = 900 };

extern unsigned unwinds __attribute__((weak));

static pthread_mutex_t g_wanted = PTHREAD_MUTEX_INITIALIZER;
static volatile int work;

/* Takes `room` bytes of stack below the caller's frame, and does not write to them. */
#define TAKE(room) __asm__ volatile("" : : "r"(alloca(room)))

static KEPT void want(unsigned room)
{
    static const struct timespec before_all = {.tv_sec = -1};
    TAKE(room);
    pthread_mutex_timedlock(&g_wanted, &before_all); /* gives up at once */
    work = work + 1;
}

/* Both callers use the same room in total. */
static KEPT void by_left(void)
{
    TAKE(32);
    want(1024);
    work = work + 1;
}

static KEPT void by_right(void)
{
    TAKE(512);
    want(1024 + 32 - 512);
    work = work + 1;
}

int main(void)
{
    void (*const volatile callers[])(void) = {by_left, by_right};
    int calls[2] = {0, 0};
    pthread_mutex_lock(&g_wanted);
    for (int turn = 0; turn < TURNS; turn++) {
        int which = turn % 9 % 2;
        callers[which]();
        calls[which]++;
    }
    pthread_mutex_unlock(&g_wanted); /* the library has counted all waits by then */
    char line[100];
    snprintf(line, sizeof line, "{\"by_left\": %d, \"by_right\": %d}", calls[0], calls[1]);
    say(line);
    snprintf(line, sizeof line, "%u", &unwinds ? unwinds : 0);
    say(line);
    return getchar() == EOF ? 0 : 1;
}
