/* Condition waits that do not simply release the mutex and take it again. A wait with a recursive
 * mutex that was taken twice releases one level only. A wait that fails at once releases nothing.
 */
#include "../target.h"

static pthread_mutex_t g_twice;
static pthread_mutex_t g_refused = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

int main(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    must(pthread_mutex_init(&g_twice, &attributes), "pthread_mutex_init");

    struct timespec past = {0, 0}, none = {0, 2000000000};
    must(pthread_mutex_lock(&g_twice), "lock");
    must(pthread_mutex_lock(&g_twice), "lock");
    check_equal("timedwait", pthread_cond_timedwait(&condition, &g_twice, &past), ETIMEDOUT);
    must(pthread_mutex_unlock(&g_twice), "unlock");

    must(pthread_mutex_lock(&g_refused), "lock");
    for (int i = 0; i < 100; i++)
        check_equal("refused", pthread_cond_timedwait(&condition, &g_refused, &none), EINVAL);

    say(failures ? "failed" : "held");
    hear();
    must(pthread_mutex_unlock(&g_twice), "unlock");
    must(pthread_mutex_unlock(&g_refused), "unlock");
    say("free");
    hear();
    return 0;
}
