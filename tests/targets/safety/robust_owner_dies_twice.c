/* A robust mutex whose owner dies twice. The program makes the mutex consistent once, and gives the
 * mutex up the other time.
 */
#include "../target.h"

static pthread_mutex_t lock;

static void *dies_with_it(void *argument)
{
    check_equal("lock", pthread_mutex_lock(&lock), 0);
    return argument;
}

static void make_robust(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    check_equal("init", pthread_mutex_init(&lock, &attributes), 0);
    pthread_mutexattr_destroy(&attributes);
}

int main(void)
{
    make_robust();
    pthread_join(start(dies_with_it, NULL, NULL), NULL);
    check_equal("lock of the dead", pthread_mutex_lock(&lock), EOWNERDEAD);
    check_equal("consistent", pthread_mutex_consistent(&lock), 0);
    check_equal("unlock", pthread_mutex_unlock(&lock), 0);
    check_equal("lock as before", pthread_mutex_lock(&lock), 0);
    check_equal("unlock", pthread_mutex_unlock(&lock), 0);
    pthread_join(start(dies_with_it, NULL, NULL), NULL);
    check_equal("trylock of the dead", pthread_mutex_trylock(&lock), EOWNERDEAD);
    check_equal("unlock unrepaired", pthread_mutex_unlock(&lock), 0);
    check_equal("lock of the lost", pthread_mutex_lock(&lock), ENOTRECOVERABLE);
    check_equal("trylock of the lost", pthread_mutex_trylock(&lock), ENOTRECOVERABLE);
    check_equal("destroy", pthread_mutex_destroy(&lock), 0);
    return verdict();
}
