/* Locks earlier than any constructor: in an ifunc resolver, which the loader calls during
 * relocation. Also in the constructor of a library that asks to be first
 * (library_constructed_first.c). A thread of that library continues to fight for locks while
 * everything else starts.
 */
#include <sched.h>

#include "../target.h"

extern int g_rounds_of_first;
extern pthread_mutex_t g_lock_of_first;
void first_may_end(void);

pthread_mutex_t g_of_resolver = PTHREAD_MUTEX_INITIALIZER;
static int locked_in_resolver;

static int chosen(void)
{
    return 42;
}

static int (*resolver(void))(void)
{
    locked_in_resolver = pthread_mutex_lock(&g_of_resolver) == 0 &&
                         pthread_mutex_trylock(&g_of_resolver) == EBUSY &&
                         pthread_mutex_unlock(&g_of_resolver) == 0;
    return chosen;
}

int choice(void) __attribute__((ifunc("resolver")));

int main(void)
{
    check_equal("the function that was chosen", choice(), 42);
    check_equal("locked in the resolver", locked_in_resolver, 1);
    for (int seen = 0; seen < 100;) {
        pthread_mutex_lock(&g_lock_of_first);
        seen = g_rounds_of_first;
        pthread_mutex_unlock(&g_lock_of_first);
        sched_yield();
    }
    first_may_end();
    return verdict_and_stay();
}
