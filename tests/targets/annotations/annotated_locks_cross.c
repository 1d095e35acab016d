/* Two threads take two annotated locks of the program in opposite order, at a line on stdin. */
#include "../../../native/include/locktop.h"
#include "../target.h"

struct own_lock {
    int word;
};
static struct own_lock g_left, g_right;
static pthread_barrier_t both_have_one;

/* A lock that spins: the library knows of the lock only what the program reports. */
static KEPT void own_take(struct own_lock *lock)
{
    int none = 0;
    locktop_acquire(lock);
    while (!__atomic_compare_exchange_n(&lock->word, &none, 1, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
        none = 0;
        pause_ms(1);
    }
    locktop_acquired(lock);
}

static KEPT void *crosses(void *argument)
{
    int to_the_right = *(int *)argument;
    own_take(to_the_right ? &g_left : &g_right);
    pthread_barrier_wait(&both_have_one);
    own_take(to_the_right ? &g_right : &g_left);
    return NULL;
}

int main(void)
{
    static int directions[2] = {0, 1};
    pthread_barrier_init(&both_have_one, NULL, 3);
    for (int i = 0; i < 2; i++)
        start(crosses, &directions[i], "crosses");
    pthread_barrier_wait(&both_have_one);
    say("crossed");
    hear();
    _exit(0);
}
