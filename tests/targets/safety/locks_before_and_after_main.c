/* Locks before main, in a constructor and in a thread of the constructor, and after main, in a
 * destructor. Says the truth about the first two.
 */
#include "../target.h"

enum { BEFORE_MAIN = 10, IN_THREAD = 20 };

pthread_mutex_t g_early_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_times(int times)
{
    for (int i = 0; i < times; i++) {
        check_equal("lock", pthread_mutex_lock(&g_early_lock), 0);
        check_equal("unlock", pthread_mutex_unlock(&g_early_lock), 0);
    }
}

static void *early_thread(void *argument)
{
    lock_times(IN_THREAD);
    return argument;
}

__attribute__((constructor(101))) static void before_main(void)
{
    lock_times(BEFORE_MAIN);
    pthread_join(start(early_thread, NULL, "early"), NULL);
}

__attribute__((destructor(101))) static void after_main(void)
{
    lock_times(1);
    say(failures ? "failed" : "ok");
}

int main(void)
{
    char text[100];
    snprintf(text, sizeof text, "{\"acquisitions\": %d}", BEFORE_MAIN + IN_THREAD);
    say(text);
    hear();
    return failures != 0;
}
