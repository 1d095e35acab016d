/* The CPUs of a simulation, which behave as Linux's scheduler, in short
 * (Documentation/scheduler/sched-eevdf.rst).
 *
 * - Each CPU has its own ready threads. The one with the least CPU time runs next, for a slice at
 *   most if others are ready. A thread that wakes takes the CPU of one with much more CPU time.
 * - A thread that wakes goes to a CPU without work, else to the CPU where it ran last. A thread
 *   that had more than its share of this CPU stays there.
 * - A CPU without work pulls a ready thread from another one, but none that ran a moment ago. A CPU
 *   that mostly lacks work for a short time waits for the next tick. So CPUs may idle while threads
 *   are ready (newidle_balance and task_hot of kernel/sched/fair.c). */
#include "simulation.h"

#include <stddef.h>

enum {
    SLICE_NS = 3000000,
    GRANULE_NS = 1000000,
    CREDIT_NS = 1500000,  /* the most a thread that slept is favoured */
    MAX_OPERATIONS = 1000 /* steps without time that a thread may take one after the other */
};

static int64_t largest(int64_t first, int64_t other)
{
    return first > other ? first : other;
}

/* The mean time without work after one more such time. */
static int64_t mean_idle_ns(int64_t mean_ns, int64_t idle_ns)
{
    int64_t change_ns = idle_ns - mean_ns;
    int64_t eighth_ns = (change_ns - (change_ns < 0 ? 7 : 0)) / 8; /* rounded down */

    return least(mean_ns + eighth_ns, MAX_IDLE_NS);
}

static void starts(struct simulation *simulation, struct sim_thread *thread)
{
    int64_t part_ns = thread->left_ns;

    thread->since_ns = simulation->now_ns;
    thread->cpu->running = thread;
    thread->on_cpu = 1;
    if (thread->cpu->ready.count)
        part_ns = least(part_ns, largest(0, SLICE_NS - thread->slice_ns));
    event_later(simulation, thread, part_ns);
}

/* Takes the CPU time into account, and leaves the CPU. */
static void stops(struct simulation *simulation, struct sim_thread *thread)
{
    int64_t ran_ns = simulation->now_ns - thread->since_ns;

    if (thread->entry.position) /* its event did not come yet */
        heap_remove(&simulation->events, thread);
    if (!thread->is_other)
        thread->used_ns += ran_ns;
    thread->slice_ns += ran_ns;
    thread->left_ns = largest(0, thread->left_ns - ran_ns);
    thread->ran_ns = simulation->now_ns;
    simulation->cpu_ns += (uint64_t)ran_ns;
    thread->on_cpu = 0;
    thread->cpu->running = NULL;
}

/* Takes the operations of a thread whose CPU is free, until it computes or waits. Returns whether
 * the thread keeps the CPU. */
static int runs(struct simulation *simulation, struct sim_thread *thread)
{
    if (thread->left_ns) {
        starts(simulation, thread);
        return 1;
    }
    for (int i = 0; i < MAX_OPERATIONS; i++) {
        const struct lt_operation *operation = &thread->operations[thread->next];

        simulation->steps++;
        if (operation->type == LT_ROUND)
            thread->rounds++;
        else if (operation->type == LT_COMPUTE)
            thread->left_ns = limited(operation->amount);
        else if (operation->type == LT_SLEEP)
            event_later(simulation, thread, limited(operation->amount));
        else if (!lock_passes(simulation, thread, operation))
            return 0;
        if (++thread->next == thread->operation_count)
            thread->next = 0;
        if (operation->type == LT_COMPUTE)
            starts(simulation, thread);
        if (operation->type == LT_COMPUTE || operation->type == LT_SLEEP)
            return operation->type == LT_COMPUTE;
    }
    event_later(simulation, thread, SLICE_NS); /* operations without any time: never a busy loop */
    return 0;
}

/* Takes a thread that is ready for another CPU, and did not run for `rest_ns`. */
static struct sim_thread *pull(struct simulation *simulation, struct cpu *cpu, int64_t rest_ns)
{
    struct cpu *busiest = simulation->cpus;
    struct sim_thread *thread = NULL;

    if (!simulation->ready_count)
        return NULL;
    for (uint64_t i = 1; i < simulation->cpu_count; i++)
        if (simulation->cpus[i].ready.count > busiest->ready.count)
            busiest = &simulation->cpus[i];
    for (uint64_t i = 0; i < busiest->ready.count; i++) {
        struct sim_thread *other = busiest->ready.threads[i];

        if (other->ran_ns <= simulation->now_ns - rest_ns &&
            (!thread || heap_precedes(other, thread)))
            thread = other;
    }
    if (!thread)
        return NULL;
    heap_remove(&busiest->ready, thread);
    simulation->ready_count--;
    thread->cpu = cpu;
    if (!thread->is_other)
        thread->used_ns += cpu->least_ns - busiest->least_ns;
    return thread;
}

/* Takes the next thread from those that are ready: the one that used the least. */
static struct sim_thread *pick(struct simulation *simulation, struct cpu *cpu)
{
    struct sim_thread *thread = heap_first(&cpu->ready);

    if (!thread)
        return cpu->idle_ns >= MIGRATION_NS ? pull(simulation, cpu, MIGRATION_NS) : NULL;
    heap_remove(&cpu->ready, thread);
    simulation->ready_count--;
    cpu->least_ns = largest(cpu->least_ns, thread->used_ns);
    return thread;
}

/* Lets the ready threads run, until one of them keeps the CPU. */
static void run_next(struct simulation *simulation, struct cpu *cpu)
{
    struct sim_thread *thread;

    while ((thread = pick(simulation, cpu))) {
        thread->slice_ns = 0;
        if (runs(simulation, thread))
            return;
    }
    cpu->idle_since_ns = simulation->now_ns;
}

static void gets_cpu(struct simulation *simulation, struct sim_thread *thread)
{
    thread->slice_ns = 0;
    if (!runs(simulation, thread))
        run_next(simulation, thread->cpu);
}

static void queue(struct simulation *simulation, struct sim_thread *thread)
{
    struct sim_thread *running = thread->cpu->running;

    if (!heap_add(&thread->cpu->ready, thread, thread->used_ns, ++simulation->number)) {
        simulation->lacks_memory = 1;
        return;
    }
    simulation->ready_count++;
    /* While nobody was ready, the thread ran without an end of its slice. */
    if (running && running->left_ns > SLICE_NS - running->slice_ns) {
        stops(simulation, running);
        starts(simulation, running);
    }
}

/* Returns the CPU on which a thread wakes: rather one without work. */
static struct cpu *cpu_for(const struct simulation *simulation, const struct sim_thread *thread)
{
    struct cpu *end = simulation->cpus + simulation->cpu_count;

    /* Linux keeps a thread with more than its share on its CPU while it sleeps (DELAY_DEQUEUE). */
    if (!thread->cpu->running || thread->used_ns > thread->cpu->least_ns)
        return thread->cpu;
    for (struct cpu *cpu = simulation->cpus; cpu < end; cpu++)
        if (!cpu->running)
            return cpu;
    for (struct cpu *cpu = simulation->cpus; thread->is_other && cpu < end; cpu++)
        if (!cpu->running->is_other)
            return cpu;
    return thread->cpu;
}

static int64_t used_now(const struct simulation *simulation, const struct sim_thread *running)
{
    if (running->is_other)
        return running->used_ns;
    return running->used_ns + simulation->now_ns - running->since_ns;
}

void cpu_wake(struct simulation *simulation, struct sim_thread *thread)
{
    struct cpu *cpu = thread->cpu = cpu_for(simulation, thread);
    struct sim_thread *running = cpu->running;

    if (!thread->is_other)
        thread->used_ns = largest(thread->used_ns, cpu->least_ns - CREDIT_NS);
    if (!running) {
        cpu->idle_ns = mean_idle_ns(cpu->idle_ns, simulation->now_ns - cpu->idle_since_ns);
        gets_cpu(simulation, thread);
    } else if (used_now(simulation, running) > thread->used_ns + GRANULE_NS && running->left_ns) {
        stops(simulation, running);
        queue(simulation, running);
        gets_cpu(simulation, thread);
    } else {
        queue(simulation, thread);
    }
}

void cpu_slice_ends(struct simulation *simulation, struct sim_thread *thread)
{
    struct cpu *cpu = thread->cpu;

    stops(simulation, thread);
    if (cpu->ready.count && thread->slice_ns >= SLICE_NS) {
        queue(simulation, thread);
        run_next(simulation, cpu);
    } else if (!runs(simulation, thread)) {
        run_next(simulation, cpu);
    }
}

void cpu_tick(struct simulation *simulation, int64_t next_ns)
{
    struct sim_thread *thread;

    if (!simulation->ready_count) {
        simulation->tick_ns += (next_ns - simulation->tick_ns) / TICK_NS * TICK_NS + TICK_NS;
        return;
    }
    simulation->now_ns = simulation->tick_ns;
    for (uint64_t i = 0; i < simulation->cpu_count; i++)
        if (!simulation->cpus[i].running && (thread = pull(simulation, &simulation->cpus[i], 0)))
            gets_cpu(simulation, thread);
    simulation->tick_ns += TICK_NS;
}
