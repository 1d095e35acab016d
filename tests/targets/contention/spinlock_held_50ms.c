/* One thread holds a spin lock for 50 ms at a time while another thread spins for the lock. Says
 * the truth, then holds the lock once more until a line comes.
 */
#include <sched.h>

#include "../target.h"

enum { ROUNDS = 10, HOLD_MS = 50 };

pthread_spinlock_t g_spin_lock;
static pthread_barrier_t taken, all_done;
static int holder_tid, spinner_tid;
static int asking;
static double wait_s, hold_s;

static KEPT void spinner_takes(void)
{
    double before = now();
    __atomic_store_n(&asking, 1, __ATOMIC_RELEASE);
    check_equal("lock", pthread_spin_lock(&g_spin_lock), 0);
    double taken_at = now();
    wait_s += taken_at - before;
    pause_ms(1);
    hold_s += now() - taken_at;
    check_equal("unlock", pthread_spin_unlock(&g_spin_lock), 0);
}

static void *spinner(void *argument)
{
    spinner_tid = own_tid();
    for (int round = 0; round <= ROUNDS; round++) {
        pthread_barrier_wait(&taken);
        spinner_takes();
        pthread_barrier_wait(&all_done);
    }
    return argument;
}

static KEPT void hold(int last)
{
    check_equal("lock", pthread_spin_lock(&g_spin_lock), 0);
    double taken_at = now();
    check_equal("trylock", pthread_spin_trylock(&g_spin_lock), EBUSY);
    pthread_barrier_wait(&taken);
    while (!__atomic_load_n(&asking, __ATOMIC_ACQUIRE))
        sched_yield();
    asking = 0;
    if (last) {
        say("held");
        hear();
    } else {
        pause_ms(HOLD_MS);
    }
    hold_s += now() - taken_at;
    check_equal("unlock", pthread_spin_unlock(&g_spin_lock), 0);
    pthread_barrier_wait(&all_done);
}

int main(void)
{
    pthread_spin_init(&g_spin_lock, PTHREAD_PROCESS_PRIVATE);
    pthread_barrier_init(&taken, NULL, 2);
    pthread_barrier_init(&all_done, NULL, 2);
    holder_tid = own_tid();
    pthread_t thread = start(spinner, NULL, "spinner");
    for (int round = 0; round < ROUNDS; round++)
        hold(0);
    char text[300];
    snprintf(text, sizeof text,
             "{\"holder\": %d, \"spinner\": %d, \"acquisitions\": %d, \"contended\": %d, "
             "\"tries\": %d, \"wait_s\": %.9f, \"hold_s\": %.9f}",
             holder_tid, spinner_tid, 2 * ROUNDS, ROUNDS, ROUNDS, wait_s, hold_s);
    say(text);
    hear();
    hold(1);
    pthread_join(thread, NULL);
    check_equal("trylock", pthread_spin_trylock(&g_spin_lock), 0);
    check_equal("unlock", pthread_spin_unlock(&g_spin_lock), 0);
    check_equal("destroy", pthread_spin_destroy(&g_spin_lock), 0);
    return verdict();
}
