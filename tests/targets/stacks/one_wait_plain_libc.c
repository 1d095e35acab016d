/* Says its tid and stack, {"tid": ..., "functions": [innermost, ...]}, and waits; then says "ok".
 * Needs only libc, so that it also runs on other processors.
 */
#include "../target.h"

static pthread_mutex_t g_record = PTHREAD_MUTEX_INITIALIZER;
static int tid;

static KEPT void take(void)
{
    pthread_mutex_lock(&g_record);
    pthread_mutex_unlock(&g_record);
    __asm__ volatile(""); /* not the last operation of the function */
}

static KEPT void ask_for(void)
{
    take();
    __asm__ volatile("");
}

static void *run(void *unused)
{
    __atomic_store_n(&tid, own_tid(), __ATOMIC_RELEASE);
    ask_for();
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_mutex_lock(&g_record);
    pthread_create(&thread, NULL, run, NULL);
    while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE) || !is_asleep(tid))
        pause_ms(1);
    char line[100];
    snprintf(line, sizeof line, "{\"tid\": %d, \"functions\": [\"take\", \"ask_for\", \"run\"]}",
             tid);
    say(line);
    getchar();
    pthread_mutex_unlock(&g_record);
    pthread_join(thread, NULL);
    say("ok");
    return 0;
}
