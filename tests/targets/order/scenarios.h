/* Scenarios in which workers take locks, each worker at the order of the main thread. The workers
 * live until the end, and no thread ever waits for a lock.
 */
#ifndef SCENARIOS_H
#define SCENARIOS_H

#include <semaphore.h>

#include "../target.h"

enum { WORKERS = 6 };

typedef void work(void);

static struct worker {
    sem_t wanted, done;
    work *job;
    pthread_t thread;
} workers[WORKERS];

static void *work_on_order(void *argument)
{
    struct worker *self = argument;
    for (;;) {
        while (sem_wait(&self->wanted) != 0)
            continue;
        self->job();
        sem_post(&self->done);
    }
    return NULL;
}

static void employ(void)
{
    for (int i = 0; i < WORKERS; i++) {
        sem_init(&workers[i].wanted, 0, 0);
        sem_init(&workers[i].done, 0, 0);
        workers[i].thread = start(work_on_order, &workers[i], NULL);
    }
}

/* Returns after that worker has done the job. */
static void on(int worker, work *job)
{
    workers[worker].job = job;
    sem_post(&workers[worker].wanted);
    while (sem_wait(&workers[worker].done) != 0)
        continue;
}

static KEPT void take(pthread_mutex_t *m)
{
    must(pthread_mutex_lock(m), "lock");
}

static void give(pthread_mutex_t *m)
{
    must(pthread_mutex_unlock(m), "unlock");
}

static KEPT void both(pthread_mutex_t *first, pthread_mutex_t *second)
{
    take(first);
    take(second);
    give(second);
    give(first);
}

#define SCENARIO(name) {#name, name}

struct scenario {
    const char *name;
    work *run;
};

/* Runs the scenario of the first argument, and says "ok". Returns the exit status. */
static int run_scenario(const struct scenario *all, size_t count, char **argv)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].name, argv[1] ? argv[1] : "") == 0) {
            all[i].run();
            return verdict_and_stay();
        }
    return 2;
}

#define RUN_SCENARIO(all, argv) run_scenario(all, sizeof all / sizeof *all, argv)

#endif
