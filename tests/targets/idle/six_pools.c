/* Six pools of threads. Each pool does one thing for good once the threads are ready:
 *
 *   accept-N  waits for the mutex g_accept_lock, which main holds
 *   writer-N  wants the rwlock g_config_lock, which main holds
 *   http-N    waits on the condition g_http_ready
 *   db-N      waits on the semaphore g_db_ready
 *   turn-N    waits on the condition g_turn in a function of its own, take_turn
 *   own-N     each thread waits on a semaphore of its own
 *
 *   six_pools EACH
 *
 * Says "ready" when all threads sleep in their waits. The end of stdin ends the program.
 */
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "../target.h"

enum { POOLS = 6, MAX_EACH = 200 };

pthread_mutex_t g_accept_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t g_config_lock = PTHREAD_RWLOCK_INITIALIZER;
pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t g_http_ready = PTHREAD_COND_INITIALIZER;
pthread_cond_t g_turn = PTHREAD_COND_INITIALIZER;
sem_t g_db_ready;
static sem_t *own[MAX_EACH];
static atomic_int tids[POOLS * MAX_EACH];

static KEPT void accept_one(void)
{
    pthread_mutex_lock(&g_accept_lock);
}

static KEPT void write_config(void)
{
    pthread_rwlock_wrlock(&g_config_lock);
}

static KEPT void wait_on(pthread_cond_t *cond)
{
    pthread_mutex_lock(&g_mutex);
    for (;;)
        pthread_cond_wait(cond, &g_mutex);
}

static KEPT void next_request(void)
{
    wait_on(&g_http_ready);
}

static KEPT void take_turn(void)
{
    wait_on(&g_turn);
}

static KEPT void next_query(void)
{
    sem_wait(&g_db_ready);
}

static KEPT void next_of_own(long number)
{
    sem_wait(own[number]);
}

static void *run(void *argument)
{
    long number = (long)argument;
    atomic_store(&tids[number], own_tid());
    switch (number / MAX_EACH) {
    case 0: accept_one(); break;
    case 1: write_config(); break;
    case 2: next_request(); break;
    case 3: next_query(); break;
    case 4: take_turn(); break;
    default: next_of_own(number % MAX_EACH);
    }
    return argument;
}

int main(int argc, char **argv)
{
    static const char *const names[POOLS] = {"accept", "writer", "http", "db", "turn", "own"};
    long each = argc > 1 ? strtol(argv[1], NULL, 10) : 4;
    if (each < 1 || each > MAX_EACH)
        return 2;
    pthread_mutex_lock(&g_accept_lock);
    pthread_rwlock_wrlock(&g_config_lock);
    must(sem_init(&g_db_ready, 0, 0), "sem_init");
    for (long i = 0; i < each; i++) {
        own[i] = malloc(sizeof *own[i]);
        must(own[i] ? sem_init(own[i], 0, 0) : ENOMEM, "sem_init");
    }
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (long pool = 0; pool < POOLS; pool++) {
        for (long i = 0; i < each; i++) {
            char name[16];
            pthread_t thread;
            snprintf(name, sizeof name, "%s-%d", names[pool], (int)i % MAX_EACH);
            must(pthread_create(&thread, &small, run, (void *)(pool * MAX_EACH + i)),
                 "pthread_create");
            pthread_setname_np(thread, name);
        }
    }
    for (long pool = 0; pool < POOLS; pool++)
        for (long i = 0; i < each; i++) {
            atomic_int *tid = &tids[pool * MAX_EACH + i];
            while (!atomic_load(tid) || !is_asleep(atomic_load(tid)))
                sched_yield();
        }
    say("ready");
    hear();
    return 0;
}
