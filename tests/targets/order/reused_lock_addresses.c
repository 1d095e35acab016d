/* Locks that threads take in two orders. The orders may deadlock one day, or another lock was at
 * the address in between. One scenario each.
 */
#include <sys/mman.h>

#include "scenarios.h"

static pthread_mutex_t g_a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *x; /* of the scenario */

static void a_x(void)
{
    both(&g_a, x);
}

static void x_a(void)
{
    both(x, &g_a);
}

static void initialised(void)
{
    x = malloc(sizeof *x);
    pthread_mutex_init(x, NULL);
    employ();
    on(0, a_x);
    on(1, x_a);
}

static void initialised_again(void)
{
    x = malloc(sizeof *x);
    pthread_mutex_init(x, NULL);
    employ();
    on(0, a_x);
    pthread_mutex_destroy(x);
    pthread_mutex_init(x, NULL);
    on(1, x_a);
}

/* As in memory that was freed without a destroy. */
static void initialised_over(void)
{
    x = malloc(sizeof *x);
    pthread_mutex_init(x, NULL);
    employ();
    on(0, a_x);
    pthread_mutex_init(x, NULL);
    on(1, x_a);
}

static void destroyed(void)
{
    x = malloc(sizeof *x);
    pthread_mutex_init(x, NULL);
    employ();
    on(0, a_x);
    pthread_mutex_destroy(x);
    *x = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* as a C++ constructor does */
    on(1, x_a);
}

/* As std::mutex: neither its constructor nor its destructor calls a function. */
static void freed_unobserved(void)
{
    x = malloc(sizeof *x);
    pthread_mutex_t *before = x;
    *x = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    employ();
    on(0, a_x);
    free(x);
    x = malloc(sizeof *x);
    check_equal("the same address", x == before, 1);
    *x = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    on(1, x_a);
}

static KEPT void with_one_on_the_stack(int worker, work *job)
{
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    x = &own;
    on(worker, job);
}

static void on_a_stack_that_returned(void)
{
    employ();
    with_one_on_the_stack(0, a_x);
    pthread_mutex_t *before = x;
    with_one_on_the_stack(1, x_a);
    check_equal("the same address", x == before, 1);
}

static KEPT void with_one_made_on_the_stack(int worker, work *job)
{
    pthread_mutex_t own;
    pthread_mutex_init(&own, NULL);
    x = &own;
    on(worker, job);
}

static void made_on_a_stack_that_returned(void)
{
    employ();
    with_one_made_on_the_stack(0, a_x);
    pthread_mutex_t *before = x;
    with_one_made_on_the_stack(1, x_a);
    check_equal("the same address", x == before, 1);
}

/* In a page that is unmapped, and mapped again at the same address. */
static void map_x(void *where)
{
    x = mmap(where, sizeof *x, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0), -1, 0);
    must(x == MAP_FAILED ? errno : 0, "mmap");
    *x = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void unmapped_unobserved(void)
{
    map_x(NULL);
    employ();
    on(0, a_x);
    munmap(x, sizeof *x);
    map_x(x);
    on(1, x_a);
}

static void unmapped_and_initialised(void)
{
    map_x(NULL);
    pthread_mutex_init(x, NULL);
    employ();
    on(0, a_x);
    munmap(x, sizeof *x);
    map_x(x);
    pthread_mutex_init(x, NULL);
    on(1, x_a);
}

/* The holder of a lock may unmap it: the library must not read the lock any more. */
static void unmapped_while_held(void)
{
    map_x(NULL);
    employ();
    on(0, a_x);
    take(x);
    munmap(x, sizeof *x);
    take(&g_a);
    give(&g_a);
}

/* ---- one lock, which lasts ---- */

static void on_the_heap(void)
{
    x = malloc(sizeof *x);
    *x = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    employ();
    on(0, a_x);
    on(1, x_a);
}

static void mapped(void)
{
    map_x(NULL);
    employ();
    on(0, a_x);
    on(1, x_a);
}

static KEPT void on_a_stack(void)
{
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    x = &own;
    employ();
    on(0, a_x);
    on(1, x_a);
}

/* ---- the same with one that has readers ---- */

static pthread_rwlock_t *l;

static void a_l(void)
{
    take(&g_a);
    must(pthread_rwlock_wrlock(l), "write");
    must(pthread_rwlock_unlock(l), "unlock");
    give(&g_a);
}

static void l_a(void)
{
    must(pthread_rwlock_rdlock(l), "read");
    take(&g_a);
    give(&g_a);
    must(pthread_rwlock_unlock(l), "unlock");
}

static void make_l(void)
{
    l = malloc(sizeof *l);
    *l = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
}

static void readers_on_the_heap(void)
{
    make_l();
    employ();
    on(0, a_l);
    on(1, l_a);
}

static void readers_freed_unobserved(void)
{
    make_l();
    pthread_rwlock_t *before = l;
    employ();
    on(0, a_l);
    free(l);
    make_l();
    check_equal("the same address", l == before, 1);
    on(1, l_a);
}

static const struct scenario scenarios[] = {
    SCENARIO(initialised),
    SCENARIO(initialised_again),
    SCENARIO(initialised_over),
    SCENARIO(destroyed),
    SCENARIO(freed_unobserved),
    SCENARIO(on_a_stack_that_returned),
    SCENARIO(made_on_a_stack_that_returned),
    SCENARIO(unmapped_unobserved),
    SCENARIO(unmapped_and_initialised),
    SCENARIO(unmapped_while_held),
    SCENARIO(on_the_heap),
    SCENARIO(mapped),
    SCENARIO(on_a_stack),
    SCENARIO(readers_on_the_heap),
    SCENARIO(readers_freed_unobserved),
};

int main(int argc, char **argv)
{
    (void)argc;
    return RUN_SCENARIO(scenarios, argv);
}
