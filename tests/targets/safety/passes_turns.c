/* Threads pass a turn round by a condition, and use the other kinds of locks beside it. Says how
 * often it called each function of conditions, then waits for a line.
 */
#include <semaphore.h>

#include "../target.h"

enum { THREADS = 4, ROUNDS = 200 };

pthread_mutex_t g_turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_turns;
static pthread_rwlock_t g_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t g_semaphore;
static int turn, waits;

static void use_other_locks(void)
{
    check_equal("wrlock", pthread_rwlock_wrlock(&g_rwlock), 0);
    check_equal("rwlock_unlock", pthread_rwlock_unlock(&g_rwlock), 0);
    check_equal("sem_wait", sem_wait(&g_semaphore), 0);
    check_equal("sem_post", sem_post(&g_semaphore), 0);
}

static void *play(void *argument)
{
    int mine = *(int *)argument;
    for (int i = 0; i < ROUNDS; i++) {
        check_equal("lock", pthread_mutex_lock(&g_turn_lock), 0);
        while (turn != mine) {
            waits++;
            check_equal("wait", pthread_cond_wait(&g_turns, &g_turn_lock), 0);
        }
        turn = (turn + 1) % THREADS;
        check_equal("broadcast", pthread_cond_broadcast(&g_turns), 0);
        check_equal("unlock", pthread_mutex_unlock(&g_turn_lock), 0);
        use_other_locks();
    }
    return argument;
}

static void give_up(void)
{
    struct timespec past = {1, 0};
    pthread_mutex_lock(&g_turn_lock);
    check_equal("timedwait", pthread_cond_timedwait(&g_turns, &g_turn_lock, &past), ETIMEDOUT);
    check_equal("signal", pthread_cond_signal(&g_turns), 0);
    pthread_mutex_unlock(&g_turn_lock);
}

int main(void)
{
    pthread_t thread[THREADS];
    int number[THREADS];
    check_equal("init", pthread_cond_init(&g_turns, NULL), 0);
    sem_init(&g_semaphore, 0, 1);
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        thread[i] = start(play, &number[i], "player");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    give_up();
    check_equal("destroy", pthread_cond_destroy(&g_turns), 0);
    printf("{\"wait\": %d, \"broadcast\": %d, \"others\": 4}\n", waits, THREADS * ROUNDS);
    return verdict_and_stay();
}
