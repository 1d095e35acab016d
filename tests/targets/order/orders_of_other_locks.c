/* Locks that threads take in orders that may deadlock one day, or only look as if they might. They
 * are reader-writer locks, spin locks, recursive mutexes, mutexes around condition waits and
 * members of lock classes. One scenario each.
 */
#include "scenarios.h"

static pthread_mutex_t g_a = PTHREAD_MUTEX_INITIALIZER, g_b = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t g_r = PTHREAD_RWLOCK_INITIALIZER, g_s = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t g_spin, g_turn;
static pthread_cond_t g_cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t g_recursive;
static struct {
    pthread_mutex_t gate, first, second;
} g_pool[2];

static KEPT void a_b(void)
{
    both(&g_a, &g_b);
}

static KEPT void b_a(void)
{
    both(&g_b, &g_a);
}

/* ---- readers and writers ---- */

static void two(pthread_rwlock_t *first, int (*how)(pthread_rwlock_t *), pthread_rwlock_t *second,
                int (*how_second)(pthread_rwlock_t *))
{
    must(how(first), "rwlock");
    must(how_second(second), "rwlock");
    pthread_rwlock_unlock(second);
    pthread_rwlock_unlock(first);
}

static void read_read_r_s(void)
{
    two(&g_r, pthread_rwlock_rdlock, &g_s, pthread_rwlock_rdlock);
}

static void read_read_s_r(void)
{
    two(&g_s, pthread_rwlock_rdlock, &g_r, pthread_rwlock_rdlock);
}

static void read_write_r_s(void)
{
    two(&g_r, pthread_rwlock_rdlock, &g_s, pthread_rwlock_wrlock);
}

static void read_write_s_r(void)
{
    two(&g_s, pthread_rwlock_rdlock, &g_r, pthread_rwlock_wrlock);
}

static void write_read_r_s(void)
{
    two(&g_r, pthread_rwlock_wrlock, &g_s, pthread_rwlock_rdlock);
}

static void readers(void)
{
    employ();
    on(0, read_read_r_s);
    on(1, read_read_s_r);
}

static void readers_that_write(void)
{
    employ();
    on(0, read_write_r_s);
    on(1, read_write_s_r);
}

static void a_writer_that_reads(void)
{
    employ();
    on(0, write_read_r_s);
    on(1, read_write_s_r);
}

static void readers_behind_writers(void)
{
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&g_r, &attributes);
    pthread_rwlock_init(&g_s, &attributes);
    readers();
}

/* ---- other locks ---- */

static void spin_turn(void)
{
    pthread_spin_lock(&g_spin);
    pthread_spin_lock(&g_turn);
    pthread_spin_unlock(&g_turn);
    pthread_spin_unlock(&g_spin);
}

static void turn_spin(void)
{
    pthread_spin_lock(&g_turn);
    pthread_spin_lock(&g_spin);
    pthread_spin_unlock(&g_spin);
    pthread_spin_unlock(&g_turn);
}

static void spins(void)
{
    pthread_spin_init(&g_spin, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_init(&g_turn, PTHREAD_PROCESS_PRIVATE);
    employ();
    on(0, spin_turn);
    on(1, turn_spin);
}

static void turn_tries_spin(void)
{
    pthread_spin_lock(&g_turn);
    must(pthread_spin_trylock(&g_spin), "trylock");
    pthread_spin_unlock(&g_spin);
    pthread_spin_unlock(&g_turn);
}

static void spin_tried_second(void)
{
    pthread_spin_init(&g_spin, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_init(&g_turn, PTHREAD_PROCESS_PRIVATE);
    employ();
    on(0, spin_turn);
    on(1, turn_tries_spin);
}

static void recursively(void)
{
    take(&g_recursive);
    take(&g_b);
    take(&g_recursive);
    give(&g_recursive);
    give(&g_b);
    give(&g_recursive);
}

static void recursive(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&g_recursive, &attributes);
    employ();
    on(0, recursively);
    on(1, recursively);
}

static void wait_a_moment(void)
{
    struct timespec past = {.tv_sec = 1};
    pthread_cond_timedwait(&g_cond, &g_b, &past);
}

/* The wait releases g_b and takes it again while the thread holds g_a. */
static void wait_in_b_a(void)
{
    take(&g_b);
    take(&g_a);
    wait_a_moment();
    give(&g_a);
    give(&g_b);
}

static void wait_in_b(void)
{
    take(&g_b);
    wait_a_moment();
    take(&g_a);
    give(&g_a);
    give(&g_b);
}

static void waiting(void)
{
    employ();
    on(0, wait_in_b_a);
    on(1, wait_in_b_a);
}

static void waiting_before(void)
{
    employ();
    on(0, wait_in_b);
    on(1, wait_in_b);
}

static void give_b(void)
{
    give(&g_b);
}

static void take_b_only(void)
{
    take(&g_b);
}

/* As a semaphore: one thread takes the mutex, and another thread releases it. */
static void handed_over(void)
{
    employ();
    on(0, take_b_only);
    on(1, give_b);
    on(0, a_b);
    on(1, b_a);
}

/* ---- classes ---- */

static int member;

static void first_second(void)
{
    both(&g_pool[member].first, &g_pool[member].second);
}

static void second_first(void)
{
    both(&g_pool[member].second, &g_pool[member].first);
}

static void classes(void)
{
    employ();
    on(0, first_second);
    member = 1;
    on(1, second_first);
}

static void gate_first_second(void)
{
    take(&g_pool[member].gate);
    first_second();
    give(&g_pool[member].gate);
}

static void gate_second_first(void)
{
    take(&g_pool[member].gate);
    second_first();
    give(&g_pool[member].gate);
}

static void classes_with_gates(void)
{
    employ();
    on(0, gate_first_second);
    member = 1;
    on(1, gate_second_first);
}

/* More pairs than the library records of one call site, by one thread, then by another. */
static pthread_mutex_t g_accounts[40];

static void transfers(void)
{
    unsigned random = 1;
    for (int i = 0; i < 20000; i++) {
        random = random * 1664525u + 1013904223u;
        unsigned from = (random >> 8) % 40, to = (random >> 16) % 40;
        if (from != to)
            both(&g_accounts[from], &g_accounts[to]);
    }
}

static void accounts(void)
{
    employ();
    on(0, transfers);
    on(1, transfers);
}

static void accounts_of_one(void)
{
    employ();
    on(0, transfers);
}

static const struct scenario scenarios[] = {
    SCENARIO(readers),
    SCENARIO(readers_that_write),
    SCENARIO(a_writer_that_reads),
    SCENARIO(readers_behind_writers),
    SCENARIO(spins),
    SCENARIO(spin_tried_second),
    SCENARIO(recursive),
    SCENARIO(waiting),
    SCENARIO(waiting_before),
    SCENARIO(handed_over),
    SCENARIO(classes),
    SCENARIO(classes_with_gates),
    SCENARIO(accounts),
    SCENARIO(accounts_of_one),
};

int main(int argc, char **argv)
{
    (void)argc;
    return RUN_SCENARIO(scenarios, argv);
}
