/* C11 threads. Checks every result, then says how often each lock was taken and waited for. Holds
 * one lock until a line comes.
 */
#include <threads.h>

#include "../target.h"

enum { ROUNDS = 50 };

mtx_t g_mtx, g_recursive_mtx, g_timed_mtx;
cnd_t g_cnd;
static int turn, waits;
static int holder_tid, waiter_tid;
static thrd_t first;

static struct timespec soon(void)
{
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    time.tv_nsec += 20000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static int player(void *argument)
{
    int self = *(int *)argument;
    for (int i = 0; i < ROUNDS; i++) {
        check_equal("lock", mtx_lock(&g_mtx), thrd_success);
        while (turn != self) {
            waits++;
            check_equal("wait", cnd_wait(&g_cnd, &g_mtx), thrd_success);
        }
        turn = !self;
        check_equal("signal", cnd_signal(&g_cnd), thrd_success);
        check_equal("unlock", mtx_unlock(&g_mtx), thrd_success);
    }
    return 40 + self;
}

static int cannot_have_it(void *argument)
{
    struct timespec until = soon();
    (void)argument;
    check_equal("trylock", mtx_trylock(&g_timed_mtx), thrd_busy);
    check_equal("timedlock", mtx_timedlock(&g_timed_mtx, &until), thrd_timedout);
    thrd_exit(7);
}

static KEPT int wants_it(void *argument)
{
    (void)argument;
    waiter_tid = own_tid();
    check_equal("lock", mtx_lock(&g_timed_mtx), thrd_success);
    check_equal("unlock", mtx_unlock(&g_timed_mtx), thrd_success);
    return 0;
}

static void results(void)
{
    int result = -1;
    thrd_t thread;
    struct timespec until = soon();
    check_equal("init", mtx_init(&g_recursive_mtx, mtx_plain | mtx_recursive), thrd_success);
    for (int i = 0; i < 3; i++)
        check_equal("lock again", mtx_lock(&g_recursive_mtx), thrd_success);
    check_equal("trylock again", mtx_trylock(&g_recursive_mtx), thrd_success);
    for (int i = 0; i < 4; i++)
        check_equal("unlock", mtx_unlock(&g_recursive_mtx), thrd_success);
    mtx_destroy(&g_recursive_mtx);

    check_equal("init", mtx_init(&g_timed_mtx, mtx_timed), thrd_success);
    check_equal("timedlock", mtx_timedlock(&g_timed_mtx, &until), thrd_success);
    check_equal("create", thrd_create(&thread, cannot_have_it, NULL), thrd_success);
    check_equal("join", thrd_join(thread, &result), thrd_success);
    check_equal("result", result, 7);
    check_equal("timed wait", cnd_timedwait(&g_cnd, &g_timed_mtx, &until), thrd_timedout);
    check_equal("unlock", mtx_unlock(&g_timed_mtx), thrd_success);
}

int main(void)
{
    static int numbers[2] = {0, 1};
    int result = -1;
    thrd_t second;
    check_equal("init", mtx_init(&g_mtx, mtx_plain), thrd_success);
    check_equal("init", cnd_init(&g_cnd), thrd_success);
    results();
    check_equal("create", thrd_create(&first, player, &numbers[0]), thrd_success);
    check_equal("create", thrd_create(&second, player, &numbers[1]), thrd_success);
    check_equal("join", thrd_join(first, &result), thrd_success);
    check_equal("result", result, 40);
    check_equal("join", thrd_join(second, NULL), thrd_success);

    holder_tid = own_tid();
    check_equal("lock", mtx_lock(&g_timed_mtx), thrd_success);
    check_equal("create", thrd_create(&first, wants_it, NULL), thrd_success);
    char text[300];
    snprintf(text, sizeof text,
             "{\"acquisitions\": %d, \"waits\": %d, \"timed_acquisitions\": 3, \"tries\": 1, "
             "\"holder\": %d}",
             2 * ROUNDS + waits, waits, holder_tid);
    say(text);
    hear();
    check_equal("unlock", mtx_unlock(&g_timed_mtx), thrd_success);
    check_equal("join", thrd_join(first, NULL), thrd_success);
    mtx_destroy(&g_timed_mtx);
    mtx_destroy(&g_mtx);
    cnd_destroy(&g_cnd);
    return verdict();
}
