/* Threads wait for units of a semaphore that nobody posts any more. Says who took units.
 *
 * semaphore_units_kept leak|buffer
 *   leak: "keeper-0" and "keeper-1" take one of three units each, keep it, and want another one.
 *   "leaver" takes one and ends. Before, each of them took and posted units twenty times.
 *   buffer: a producer takes free cells of a buffer, and a consumer posts them. The consumer stops,
 *   so the producer waits. Nobody kept a unit.
 */
#include <semaphore.h>

#include "../target.h"

enum { UNITS = 3, KEEPERS = 2, ROUNDS = 20 };
static sem_t g_slots, g_filled, g_never;
static int keepers[KEEPERS], leaver_tid, producer_tid;

static KEPT void borrow(void)
{
    sem_wait(&g_slots);
}

static void use_many_times(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        borrow();
        sem_post(&g_slots);
    }
}

static void *leave(void *unused)
{
    leaver_tid = own_tid();
    use_many_times();
    borrow();
    return unused;
}

static void *keep(void *number)
{
    use_many_times();
    borrow();
    __atomic_store_n(&keepers[(uintptr_t)number], own_tid(), __ATOMIC_RELEASE);
    sem_wait(&g_never);
    borrow();
    return NULL;
}

static void *produce(void *unused)
{
    __atomic_store_n(&producer_tid, own_tid(), __ATOMIC_RELEASE);
    for (;;) {
        borrow();
        sem_post(&g_filled);
    }
    return unused;
}

static void *consume(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        sem_wait(&g_filled);
        sem_post(&g_slots);
    }
    sem_wait(&g_never);
    return unused;
}

static void await(const int *tid)
{
    while (!__atomic_load_n(tid, __ATOMIC_ACQUIRE) || !is_asleep(*tid))
        pause_ms(1);
}

static void run_leak(void)
{
    pthread_t threads[KEEPERS];
    pthread_join(start(leave, NULL, "leaver"), NULL);
    for (uintptr_t i = 0; i < KEEPERS; i++) {
        threads[i] = start(keep, (void *)i, i ? "keeper-1" : "keeper-0");
        await(&keepers[i]);
    }
    for (int i = 0; i < KEEPERS; i++)
        sem_post(&g_never);
    printf("{\"keepers\": [%d, %d], \"leaver\": %d}\n", keepers[0], keepers[1], leaver_tid);
    fflush(stdout);
    pthread_join(threads[0], NULL);
}

static void run_buffer(void)
{
    start(consume, NULL, "consumer");
    pthread_t producer = start(produce, NULL, "producer");
    await(&producer_tid);
    printf("{\"producer\": %d}\n", producer_tid);
    fflush(stdout);
    pthread_join(producer, NULL);
}

int main(int argc, char **argv)
{
    sem_init(&g_slots, 0, UNITS);
    sem_init(&g_filled, 0, 0);
    sem_init(&g_never, 0, 0);
    if (argc > 1 && strcmp(argv[1], "buffer") == 0)
        run_buffer();
    else
        run_leak();
}
