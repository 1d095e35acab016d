/* A library to preload behind locktop's library, or to link with a program. Its functions have no
 * version. Counts the calls of conditions that reach it, and says the counts at the end.
 */
#include "../target.h"

#include <dlfcn.h>

static long waits, broadcasts, others;

static void count(long *calls)
{
    __atomic_fetch_add(calls, 1, __ATOMIC_RELAXED);
}

#define FORWARD(name, calls, parameters, arguments)                                                \
    int name parameters                                                                            \
    {                                                                                              \
        int(*real) parameters = (int(*) parameters)dlsym(RTLD_NEXT, #name);                        \
        count(&calls);                                                                             \
        return real arguments;                                                                     \
    }
FORWARD(pthread_cond_wait, waits, (pthread_cond_t * c, pthread_mutex_t *m), (c, m))
FORWARD(pthread_cond_broadcast, broadcasts, (pthread_cond_t * c), (c))
FORWARD(pthread_cond_signal, others, (pthread_cond_t * c), (c))
FORWARD(pthread_cond_destroy, others, (pthread_cond_t * c), (c))
FORWARD(pthread_cond_init, others, (pthread_cond_t * c, const pthread_condattr_t *a), (c, a))
FORWARD(pthread_cond_timedwait, others,
        (pthread_cond_t * c, pthread_mutex_t *m, const struct timespec *t), (c, m, t))

__attribute__((destructor)) static void at_the_end(void)
{
    char text[100];
    snprintf(text, sizeof text, "{\"wait\": %ld, \"broadcast\": %ld, \"others\": %ld}", waits,
             broadcasts, others);
    say(text);
}
