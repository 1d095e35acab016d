/* A hold that the library does not time, while other threads wait.
 *
 * untimed_hold mutex|sem: "keeper" takes and gives the lock often, so that the library times few of
 * the holds. Then it keeps the lock. Three "wanter" threads wait for it. The target says when the
 * hold began, on the monotonic clock. A line lets "keeper" give the lock and take it again at once,
 * before a wanter has it. Then the target says when the new hold began.
 */
#include <semaphore.h>

#include "../target.h"

enum { WANTERS = 3, PAIRS = 20000, AGAIN_MS = 200 };

pthread_mutex_t g_ledger_lock = PTHREAD_MUTEX_INITIALIZER;
sem_t g_ledger_unit;
static int uses_mutex, tids[WANTERS];
static double held_since;

static KEPT void take(void)
{
    if (uses_mutex)
        pthread_mutex_lock(&g_ledger_lock);
    else
        sem_wait(&g_ledger_unit);
}

static KEPT int take_now(void)
{
    return uses_mutex ? pthread_mutex_trylock(&g_ledger_lock) : sem_trywait(&g_ledger_unit);
}

static KEPT void give(void)
{
    if (uses_mutex)
        pthread_mutex_unlock(&g_ledger_lock);
    else
        sem_post(&g_ledger_unit);
}

static void *want(void *argument)
{
    __atomic_store_n(&tids[(intptr_t)argument], own_tid(), __ATOMIC_SEQ_CST);
    for (;;) {
        take();
        give();
        pause_ms(1);
    }
    return NULL;
}

/* A new thread may sleep elsewhere before it waits. */
static int wants_lock(int tid)
{
    return uses_mutex ? sleeps_at(tid, &g_ledger_lock, sizeof g_ledger_lock)
                      : sleeps_at(tid, &g_ledger_unit, sizeof g_ledger_unit);
}

static void await_wanters(void)
{
    for (int i = 0; i < WANTERS; i++)
        while (!wants_lock(__atomic_load_n(&tids[i], __ATOMIC_SEQ_CST)))
            pause_ms(1);
}

static void say_since(void)
{
    char line[64];
    snprintf(line, sizeof line, "%.9f", held_since);
    say(line);
}

static void *keep(void *argument)
{
    for (int i = 0; i < PAIRS; i++) {
        take();
        give();
    }
    take();
    held_since = now();
    for (intptr_t i = 0; i < WANTERS; i++)
        start(want, (void *)i, "wanter");
    await_wanters();
    say_since();
    hear();
    for (;;) { /* a wanter may be faster */
        give();
        held_since = now();
        if (take_now() == 0)
            break;
        take();
        pause_ms(AGAIN_MS);
    }
    pause_ms(AGAIN_MS);
    say_since();
    hear();
    return argument;
}

int main(int argc, char **argv)
{
    uses_mutex = argc < 2 || strcmp(argv[1], "mutex") == 0;
    must(sem_init(&g_ledger_unit, 0, 1) ? errno : 0, "sem_init");
    pthread_join(start(keep, NULL, "keeper"), NULL);
    return 0;
}
