/* Four locks on the heap. A thread waits for each lock once while the first thread holds it. The
 * locks differ in their initialisation:
 *
 *   connection  by a function that makes connections
 *   factory     by a function that makes all locks, for another function
 *   again       again at an address where a lock was destroyed
 *   copied      by no call
 *
 * Says {"connection": [address, line], "factory": [address, line], "again": [address, line],
 * "copied": [address, line]} when all four threads wait. The line is the line of the
 * initialisation, or of the wait where the initialisation says nothing.
 */
#include "../target.h"

static int made_line, called_line, wanted_line;

static KEPT pthread_mutex_t *connection_new(void)
{
    pthread_mutex_t *lock = malloc(sizeof *lock);
    pthread_mutex_init(lock, NULL), made_line = __LINE__;
    return lock;
}

static KEPT pthread_mutex_t *make_mutex(void)
{
    pthread_mutex_t *lock = malloc(sizeof *lock);
    pthread_mutex_init(lock, NULL);
    return lock;
}

static int again_line;
static KEPT void renew(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    pthread_mutex_destroy(lock);
    pthread_mutex_init(lock, NULL), again_line = __LINE__;
}

static KEPT pthread_mutex_t *copy(void)
{
    static const pthread_mutex_t initial = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t *lock = malloc(sizeof *lock);
    *lock = initial;
    return lock;
}

static int tid;
static KEPT void want(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock), __atomic_store_n(&wanted_line, __LINE__, __ATOMIC_RELAXED);
    pthread_mutex_unlock(lock);
}

static void *run(void *lock)
{
    __atomic_store_n(&tid, own_tid(), __ATOMIC_RELEASE);
    want(lock);
    return NULL;
}

int main(void)
{
    pthread_mutex_t *factory = (called_line = __LINE__, make_mutex());
    pthread_mutex_t *locks[] = {connection_new(), factory, connection_new(), copy()};
    want(locks[0]); /* so that the program knows the line */
    renew(locks[2]);
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        pthread_mutex_lock(locks[i]);
        tid = 0;
        pthread_create(&thread, NULL, run, locks[i]);
        while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE) || !is_asleep(tid))
            pause_ms(1);
    }
    char line[300];
    snprintf(line, sizeof line,
             "{\"connection\": [%lu, %d], \"factory\": [%lu, %d], \"again\": [%lu, %d], "
             "\"copied\": [%lu, %d]}",
             (unsigned long)locks[0], made_line, (unsigned long)locks[1], called_line,
             (unsigned long)locks[2], again_line, (unsigned long)locks[3], wanted_line);
    say(line);
    return getchar() == EOF ? 0 : 1;
}
