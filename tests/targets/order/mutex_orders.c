/* Mutexes that threads take in orders that may deadlock one day, or only look as if they might.
 * There are two mutexes, three and more, mutexes behind a gate, and threads that come and go. Each
 * order is one scenario.
 */
#include "scenarios.h"

static pthread_mutex_t g_a = PTHREAD_MUTEX_INITIALIZER, g_b = PTHREAD_MUTEX_INITIALIZER,
                       g_c = PTHREAD_MUTEX_INITIALIZER, g_gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t g_r = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t g_ring[WORKERS];

static KEPT void a_b(void)
{
    both(&g_a, &g_b);
}

static KEPT void b_a(void)
{
    both(&g_b, &g_a);
}

static void b_c(void)
{
    both(&g_b, &g_c);
}

static void c_a(void)
{
    both(&g_c, &g_a);
}

static void *run(void *job)
{
    (*(work **)job)();
    return NULL;
}

static void in_a_thread(work *job)
{
    pthread_t thread = start(run, &job, NULL);
    must(pthread_join(thread, NULL), "join");
}

/* ---- two mutexes ---- */

static void inversion(void)
{
    employ();
    on(0, a_b);
    on(1, b_a);
}

static void same_thread(void)
{
    employ();
    on(0, a_b);
    on(0, b_a);
}

static void same_thread_and_another(void)
{
    same_thread();
    on(1, a_b);
}

static void b_tries_a(void)
{
    take(&g_b);
    must(pthread_mutex_trylock(&g_a), "trylock");
    give(&g_a);
    give(&g_b);
}

static void tried_second(void)
{
    employ();
    on(0, a_b);
    on(1, b_tries_a);
}

static void b_tried_a(void)
{
    must(pthread_mutex_trylock(&g_b), "trylock");
    take(&g_a);
    give(&g_a);
    give(&g_b);
}

static void tried_first(void)
{
    employ();
    on(0, a_b);
    on(1, b_tried_a);
}

static void b_a_for_a_time(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    take(&g_b);
    must(pthread_mutex_timedlock(&g_a, &until), "timedlock");
    give(&g_a);
    give(&g_b);
}

static void timed_second(void)
{
    employ();
    on(0, a_b);
    on(1, b_a_for_a_time);
}

/* ---- three and more ---- */

static void three(void)
{
    employ();
    on(0, a_b);
    on(1, b_c);
    on(2, c_a);
}

static void three_by_two_threads(void)
{
    employ();
    on(0, a_b);
    on(0, b_c);
    on(1, c_a);
}

static void a_b_c(void)
{
    take(&g_a);
    take(&g_b);
    take(&g_c);
    give(&g_c);
    give(&g_b);
    give(&g_a);
}

static void three_at_once_by_two_threads(void)
{
    employ();
    on(0, a_b_c);
    on(1, c_a);
}

static void a_then_b_then_c(void)
{
    take(&g_a);
    take(&g_b);
    give(&g_a);
    take(&g_c);
    give(&g_b);
    give(&g_c);
}

static void hand_over_hand(void)
{
    employ();
    on(0, a_then_b_then_c);
    on(1, c_a);
}

static int position;

static void next_with_an_end(void)
{
    int next = (position + 1) % WORKERS;
    both(&g_ring[position < next ? position : next], &g_ring[position < next ? next : position]);
}

static void ring_with_an_end(void)
{
    employ();
    for (position = 0; position < WORKERS; position++)
        on(position, next_with_an_end);
}

static void next_in_ring(void)
{
    both(&g_ring[position], &g_ring[(position + 1) % WORKERS]);
}

static void ring(void)
{
    employ();
    for (position = 0; position < WORKERS; position++)
        on(position, next_in_ring);
}

/* ---- a gate ---- */

static void gate_a_b(void)
{
    take(&g_gate);
    a_b();
    give(&g_gate);
}

static void gate_b_a(void)
{
    take(&g_gate);
    b_a();
    give(&g_gate);
}

static void gate(void)
{
    employ();
    on(0, gate_a_b);
    on(1, gate_b_a);
}

static void gate_of_one(void)
{
    employ();
    on(0, gate_a_b);
    on(1, b_a);
}

static void gate_left_out_once(void)
{
    gate();
    on(1, b_a);
}

static void read_a_b(void)
{
    pthread_rwlock_rdlock(&g_r);
    a_b();
    pthread_rwlock_unlock(&g_r);
}

static void read_b_a(void)
{
    pthread_rwlock_rdlock(&g_r);
    b_a();
    pthread_rwlock_unlock(&g_r);
}

static void write_b_a(void)
{
    pthread_rwlock_wrlock(&g_r);
    b_a();
    pthread_rwlock_unlock(&g_r);
}

static void gate_of_readers(void)
{
    employ();
    on(0, read_a_b);
    on(1, read_b_a);
}

static void gate_of_a_writer(void)
{
    employ();
    on(0, read_a_b);
    on(1, write_b_a);
}

/* ---- threads that come and go ---- */

static void before_it_was_created(void)
{
    a_b();
    in_a_thread(b_a);
}

static void created_by_a_child(void)
{
    in_a_thread(b_a);
}

static void before_its_creator_was_created(void)
{
    a_b();
    in_a_thread(created_by_a_child);
}

static void while_it_lives(void)
{
    employ();
    a_b();
    on(0, b_a);
}

static void after_it_was_joined(void)
{
    in_a_thread(a_b);
    in_a_thread(b_a);
}

static void before_and_after(void)
{
    a_b();
    in_a_thread(b_a);
    a_b();
}

static void beside_another(void)
{
    employ();
    on(0, b_a);
    in_a_thread(a_b);
}

static const struct scenario scenarios[] = {
    SCENARIO(inversion),
    SCENARIO(same_thread),
    SCENARIO(same_thread_and_another),
    SCENARIO(tried_second),
    SCENARIO(tried_first),
    SCENARIO(timed_second),
    SCENARIO(three),
    SCENARIO(three_by_two_threads),
    SCENARIO(three_at_once_by_two_threads),
    SCENARIO(hand_over_hand),
    SCENARIO(ring),
    SCENARIO(ring_with_an_end),
    SCENARIO(gate),
    SCENARIO(gate_of_one),
    SCENARIO(gate_left_out_once),
    SCENARIO(gate_of_readers),
    SCENARIO(gate_of_a_writer),
    SCENARIO(before_it_was_created),
    SCENARIO(before_its_creator_was_created),
    SCENARIO(while_it_lives),
    SCENARIO(after_it_was_joined),
    SCENARIO(before_and_after),
    SCENARIO(beside_another),
};

int main(int argc, char **argv)
{
    (void)argc;
    return RUN_SCENARIO(scenarios, argv);
}
