/* A thread that never looks at its argument waits at the end of the process. Nobody else has the
 * argument, which is no leak.
 */
#include "../target.h"

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t g_begun;

static void *wait_for_ever(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&g_begun);
    pthread_mutex_lock(&g_lock);
    return NULL;
}

static KEPT void start_with_memory(void)
{
    start(wait_for_ever, malloc(77), NULL);
}

/* Overwrites what the calls before left on the stack. */
static KEPT void clean_stack(void)
{
    volatile char room[4096];
    for (size_t i = 0; i < sizeof room; i++)
        room[i] = 0;
}

int main(void)
{
    pthread_barrier_init(&g_begun, NULL, 2);
    pthread_mutex_lock(&g_lock);
    start_with_memory();
    clean_stack();
    pthread_barrier_wait(&g_begun);
    puts("{}");
    return verdict();
}
