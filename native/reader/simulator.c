/* Runs a simulated program. The simulation is one of discrete events. */
#include "simulator.h"

#include <errno.h>
#include <stdlib.h>

#include "simulation.h"

/* Of the warm-up, and of the time that counts. Many events come without a step, and a thread may
 * take many steps at once. So both have a limit. */
enum { MAX_EVENTS = 500000, MAX_STEPS = 5000000 };

#define BEFORE_ALL (INT64_MIN / 2) /* CPU time of the threads that the scheduler prefers */

void event_later(struct simulation *simulation, struct sim_thread *thread, int64_t after_ns)
{
    int64_t at_ns = simulation->now_ns + after_ns;

    if (!heap_add(&simulation->events, thread, at_ns, ++simulation->number))
        simulation->lacks_memory = 1;
}

static int is_sound(const struct lt_program *program)
{
    uint64_t left = program->operation_count;

    for (uint64_t i = 0; i < program->thread_count; i++) {
        const struct lt_thread_model *model = &program->threads[i];

        if (model->operations <= 0 || (uint64_t)model->operations > left || model->start < 0 ||
            model->start >= model->operations)
            return 0;
        left -= (uint64_t)model->operations;
    }
    for (uint64_t i = 0; i < program->operation_count; i++) {
        const struct lt_operation *operation = &program->operations[i];
        int has_lock = operation->type >= LT_TAKE && operation->type <= LT_MEET;

        if (operation->type < LT_COMPUTE || operation->type > LT_ROUND)
            return 0;
        if (has_lock && (operation->lock < 0 || (uint64_t)operation->lock >= program->lock_count))
            return 0;
    }
    return 1;
}

static uint64_t count_takes(const struct lt_program *program)
{
    uint64_t takes = 0;

    for (uint64_t i = 0; i < program->operation_count; i++)
        takes += program->operations[i].type == LT_TAKE;
    return takes;
}

/* Returns 0 if there is no memory. */
static int allocate(struct simulation *simulation)
{
    const struct lt_program *program = simulation->program;

    /* There is never work for more CPUs than threads. */
    simulation->cpu_count =
        program->cpus < program->thread_count ? program->cpus : program->thread_count;
    simulation->cpu_count += !simulation->cpu_count;
    simulation->threads = calloc(program->thread_count + 1, sizeof *simulation->threads);
    simulation->locks = calloc(program->lock_count + 1, sizeof *simulation->locks);
    simulation->cpus = calloc(simulation->cpu_count, sizeof *simulation->cpus);
    simulation->passed_locks = calloc(count_takes(program) + 1, sizeof *simulation->passed_locks);
    return simulation->threads && simulation->locks && simulation->cpus &&
           simulation->passed_locks && heap_reserve(&simulation->events, program->thread_count);
}

static void free_all(struct simulation *simulation)
{
    for (uint64_t i = 0; simulation->cpus && i < simulation->cpu_count; i++)
        free(simulation->cpus[i].ready.threads);
    free(simulation->events.threads);
    free(simulation->passed_locks);
    free(simulation->cpus);
    free(simulation->locks);
    free(simulation->threads);
}

static void fill(struct simulation *simulation)
{
    const struct lt_program *program = simulation->program;
    const struct lt_operation *operations = program->operations;

    for (uint64_t i = 0; i < simulation->cpu_count; i++)
        simulation->cpus[i].idle_ns = MAX_IDLE_NS;
    for (uint64_t i = 0; i < program->lock_count; i++) {
        struct sim_lock *lock = &simulation->locks[i];

        lock->type = program->locks[i].type;
        lock->units = lock->threads = limited(program->locks[i].units);
        lock->is_free = 1;
    }
    for (uint64_t i = 0; i < program->thread_count; i++) {
        const struct lt_thread_model *model = &program->threads[i];
        struct sim_thread *thread = &simulation->threads[i];

        thread->operations = operations;
        thread->operation_count = (uint64_t)model->operations;
        thread->next = (uint64_t)model->start;
        thread->cpu = &simulation->cpus[i % simulation->cpu_count];
        thread->is_other = model->is_other != 0;
        thread->used_ns = thread->is_other ? BEFORE_ALL : 0;
        thread->ran_ns = -MIGRATION_NS;
        operations += model->operations;
    }
}

static void run_until(struct simulation *simulation, int64_t end_ns)
{
    uint64_t last = simulation->number + MAX_EVENTS, last_step = simulation->steps + MAX_STEPS;

    while (simulation->number <= last && simulation->steps <= last_step &&
           !simulation->lacks_memory) {
        struct sim_thread *thread = heap_first(&simulation->events);
        int64_t next_ns = thread ? least(thread->entry.key, end_ns) : end_ns;

        if (next_ns >= simulation->tick_ns) {
            cpu_tick(simulation, next_ns);
            continue;
        }
        if (!thread || thread->entry.key > end_ns) {
            simulation->now_ns = end_ns;
            return;
        }
        simulation->now_ns = thread->entry.key;
        heap_remove(&simulation->events, thread);
        if (thread->on_cpu)
            cpu_slice_ends(simulation, thread);
        else
            cpu_wake(simulation, thread);
    }
}

/* Forgets the counts of the warm-up. */
static void begin_counts(struct simulation *simulation)
{
    for (uint64_t i = 0; i < simulation->program->thread_count; i++)
        simulation->threads[i].rounds = 0;
    for (uint64_t i = 0; i < simulation->program->lock_count; i++)
        simulation->locks[i].wait_ns = 0;
    simulation->cpu_ns = 0;
}

static void count(const struct simulation *simulation, int64_t begin_ns, struct lt_outcome *outcome)
{
    outcome->stopped = 0;
    for (uint64_t i = 0; i < simulation->program->thread_count; i++) {
        const struct sim_thread *thread = &simulation->threads[i];

        outcome->rounds[i] = thread->rounds;
        outcome->stopped += thread->waits_ns > 0 && thread->waits_ns <= begin_ns;
    }
    for (uint64_t i = 0; i < simulation->program->lock_count; i++)
        outcome->wait_ns[i] = simulation->locks[i].wait_ns;
    outcome->cpu_ns = simulation->cpu_ns;
    outcome->span_ns = simulation->now_ns - begin_ns;
    if (outcome->span_ns < 1)
        outcome->span_ns = 1;
}

int lt_simulate(const struct lt_program *program, int64_t warm_up_ns, int64_t span_ns,
                struct lt_outcome *outcome)
{
    struct simulation simulation = {
        .program = program, .tick_ns = TICK_NS, .random = program->seed};
    int64_t begin_ns;
    int error;

    if (!is_sound(program))
        return -EINVAL;
    if (!allocate(&simulation)) {
        free_all(&simulation);
        return -ENOMEM;
    }
    fill(&simulation);
    for (uint64_t i = 0; i < program->thread_count; i++)
        cpu_wake(&simulation, &simulation.threads[i]);
    run_until(&simulation, limited(warm_up_ns));
    begin_ns = simulation.now_ns;
    begin_counts(&simulation);
    run_until(&simulation, begin_ns + limited(span_ns));
    count(&simulation, begin_ns, outcome);
    error = simulation.lacks_memory ? -ENOMEM : 0;
    free_all(&simulation);
    return error;
}
