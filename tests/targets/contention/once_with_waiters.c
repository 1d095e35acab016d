/* One thread runs a once routine until a line comes, while two other threads wait for the routine.
 * The routine runs another once routine, and takes a lock. Then all of this again with C11.
 */
#include <threads.h>

#include "../target.h"

enum { OTHERS = 2 };

pthread_once_t g_once = PTHREAD_ONCE_INIT;
pthread_once_t g_inner_once = PTHREAD_ONCE_INIT;
once_flag g_flag = ONCE_FLAG_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begun;
static int runs, inner_runs, flag_runs, c11;

static void run_inner(void)
{
    inner_runs++;
}

static KEPT void run_slowly(void)
{
    char text[100];
    int *count = c11 ? &flag_runs : &runs;
    *count = *count + 1;
    pthread_once(&g_inner_once, run_inner);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    pthread_barrier_wait(&begun);
    snprintf(text, sizeof text, "{\"runner\": %d}", own_tid());
    say(text);
    hear();
}

static KEPT void need(void)
{
    if (c11)
        call_once(&g_flag, run_slowly);
    else
        check_equal("once", pthread_once(&g_once, run_slowly), 0);
}

static void *late(void *argument)
{
    pthread_barrier_wait(&begun);
    need();
    return argument;
}

static void round_of(int with_c11)
{
    pthread_t threads[OTHERS];
    c11 = with_c11;
    for (int i = 0; i < OTHERS; i++)
        threads[i] = start(late, NULL, "late");
    need();
    for (int i = 0; i < OTHERS; i++)
        pthread_join(threads[i], NULL);
    need();
    say("done");
    hear();
}

int main(void)
{
    pthread_barrier_init(&begun, NULL, OTHERS + 1);
    round_of(0);
    round_of(1);
    check_equal("runs", runs, 1);
    check_equal("inner runs", inner_runs, 1);
    check_equal("runs of call_once", flag_runs, 1);
    return verdict();
}
