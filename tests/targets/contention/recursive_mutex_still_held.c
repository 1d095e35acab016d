/* A recursive mutex that was taken three times and released twice is still held. Says "held" then,
 * while another thread wants the mutex, and "free" after the last release. Also checks what an
 * error-checking mutex refuses.
 */
#include "../target.h"

pthread_mutex_t g_recursive_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_mutex_t g_checked_lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_barrier_t about_to_want;

static void *wanter(void *argument)
{
    check_equal("unlock by another", pthread_mutex_unlock(&g_checked_lock), EPERM);
    check_equal("unlock of a recursive one by another", pthread_mutex_unlock(&g_recursive_lock),
                EPERM);
    check_equal("trylock", pthread_mutex_trylock(&g_recursive_lock), EBUSY);
    pthread_barrier_wait(&about_to_want);
    check_equal("lock", pthread_mutex_lock(&g_recursive_lock), 0);
    check_equal("unlock", pthread_mutex_unlock(&g_recursive_lock), 0);
    return argument;
}

int main(void)
{
    pthread_barrier_init(&about_to_want, NULL, 2);
    check_equal("lock", pthread_mutex_lock(&g_checked_lock), 0);
    check_equal("lock again", pthread_mutex_lock(&g_checked_lock), EDEADLK);
    check_equal("lock", pthread_mutex_lock(&g_recursive_lock), 0);
    check_equal("lock again", pthread_mutex_lock(&g_recursive_lock), 0);
    check_equal("trylock again", pthread_mutex_trylock(&g_recursive_lock), 0);
    pthread_t thread = start(wanter, NULL, "wanter");
    pthread_barrier_wait(&about_to_want);
    check_equal("unlock", pthread_mutex_unlock(&g_recursive_lock), 0);
    check_equal("unlock", pthread_mutex_unlock(&g_recursive_lock), 0);
    say("held");
    hear();
    check_equal("unlock", pthread_mutex_unlock(&g_recursive_lock), 0);
    pthread_join(thread, NULL);
    say("free");
    hear();
    check_equal("unlock one too many", pthread_mutex_unlock(&g_recursive_lock), EPERM);
    check_equal("unlock", pthread_mutex_unlock(&g_checked_lock), 0);
    check_equal("unlock one too many", pthread_mutex_unlock(&g_checked_lock), EPERM);
    return verdict();
}
