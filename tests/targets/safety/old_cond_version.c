/* A program of before 2002, bound to the first version of condition variables, whose object differs
 * from today's. Two threads pass a turn to each other, then one thread waits and gives up.
 */
#include <dlfcn.h>

#include "../target.h"

#define OLD "GLIBC_2.2.5"
int old_init(pthread_cond_t *, const pthread_condattr_t *);
int old_destroy(pthread_cond_t *);
int old_signal(pthread_cond_t *);
int old_broadcast(pthread_cond_t *);
int old_wait(pthread_cond_t *, pthread_mutex_t *);
int old_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
__asm__(".symver old_init, pthread_cond_init@" OLD);
__asm__(".symver old_destroy, pthread_cond_destroy@" OLD);
__asm__(".symver old_signal, pthread_cond_signal@" OLD);
__asm__(".symver old_broadcast, pthread_cond_broadcast@" OLD);
__asm__(".symver old_wait, pthread_cond_wait@" OLD);
__asm__(".symver old_timedwait, pthread_cond_timedwait@" OLD);

enum { ROUNDS = 1000 };

/* As in old programs: a pointer to memory that the first use allocates, and no more. */
struct old_cond {
    void *real;
    unsigned char behind[sizeof(pthread_cond_t) - sizeof(void *)];
} g_old_cond, g_made;

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static int turn;

static pthread_cond_t *old(struct old_cond *condition)
{
    return (pthread_cond_t *)condition;
}

static void play(int mine)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&g_mutex);
        while (turn != mine)
            check_equal("wait", old_wait(old(&g_old_cond), &g_mutex), 0);
        turn = !mine;
        check_equal("broadcast", old_broadcast(old(&g_old_cond)), 0);
        pthread_mutex_unlock(&g_mutex);
    }
}

static void *second(void *argument)
{
    play(1);
    return argument;
}

/* A lookup without a version finds today's function. */
static void find_functions(void)
{
    void *any = dlsym(RTLD_DEFAULT, "pthread_cond_wait");
    check_equal("today's", any == dlvsym(RTLD_DEFAULT, "pthread_cond_wait", "GLIBC_2.3.2"), 1);
    check_equal("the old one", any == dlvsym(RTLD_DEFAULT, "pthread_cond_wait", OLD), 0);
}

int main(void)
{
    find_functions();
    memset(g_old_cond.behind, 0x5a, sizeof g_old_cond.behind);
    pthread_t thread = start(second, NULL, "second");
    play(0);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < sizeof g_old_cond.behind; i++)
        check_equal("what lies behind", g_old_cond.behind[i], 0x5a);

    struct timespec past = {0, 0};
    check_equal("init", old_init(old(&g_made), NULL), 0);
    check_equal("signal", old_signal(old(&g_made)), 0);
    pthread_mutex_lock(&g_mutex);
    check_equal("timedwait", old_timedwait(old(&g_made), &g_mutex, &past), ETIMEDOUT);
    pthread_mutex_unlock(&g_mutex);
    check_equal("destroy", old_destroy(old(&g_made)), 0);
    return verdict_and_stay();
}
