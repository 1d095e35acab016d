/* An incident: two transfers take the locks of two accounts in opposite order, and deadlock.
 *
 * Says "ready" when both wait.
 */
#include <sched.h>

#include "../target.h"

pthread_mutex_t g_checking = PTHREAD_MUTEX_INITIALIZER, g_savings = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static int tids[2];

static KEPT void transfer(pthread_mutex_t *from, pthread_mutex_t *to, int *tid)
{
    must(pthread_mutex_lock(from), "lock");
    pthread_barrier_wait(&both);
    __atomic_store_n(tid, own_tid(), __ATOMIC_RELEASE);
    must(pthread_mutex_lock(to), "lock");
}

static KEPT void *deposit(void *unused)
{
    transfer(&g_checking, &g_savings, &tids[0]);
    return unused;
}

static KEPT void *withdraw(void *unused)
{
    transfer(&g_savings, &g_checking, &tids[1]);
    return unused;
}

int main(void)
{
    pthread_barrier_init(&both, NULL, 2);
    start(deposit, NULL, "deposit");
    start(withdraw, NULL, "withdraw");
    for (int i = 0; i < 2; i++)
        while (!__atomic_load_n(&tids[i], __ATOMIC_ACQUIRE) || !is_asleep(tids[i]))
            sched_yield();
    say("ready");
    getchar(); /* until stdin has a line or ends */
    _exit(0);
}
