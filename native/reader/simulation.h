/* The state of a simulation. simulator.c moves the time, simulated_cpus.c is the scheduler and
 * simulated_locks.c has the locks. */
#ifndef LOCKTOP_SIMULATION_H
#define LOCKTOP_SIMULATION_H

#include "simulator.h"
#include "thread_heap.h"

#define MAX_AMOUNT ((int64_t)1 << 56)

enum {
    TICK_NS = 4000000,     /* between two ticks */
    MAX_IDLE_NS = 1000000, /* the longest time without work that counts */
    /* A CPU with less time without work pulls no thread. A thread that ran so recently stays. */
    MIGRATION_NS = 500000
};

struct cpu {
    struct sim_thread *running;
    struct thread_heap ready; /* by used_ns */
    int64_t least_ns;         /* CPU time of the threads that run next */
    int64_t idle_ns;          /* the mean time without work */
    int64_t idle_since_ns;
};

struct sim_lock {
    int64_t type;
    struct sim_thread *owner; /* of a lock that one thread has alone */
    struct sim_thread *first; /* of those that wait, in the order of their arrival */
    struct sim_thread *last;
    uint64_t waiting;
    uint64_t waiting_readers;
    uint64_t readers;
    int64_t units;
    int64_t threads; /* of a barrier */
    uint64_t wait_ns;
    int is_free;
    int has_sleepers; /* a mutex whose release wakes a thread */
};

/* How often a thread did not get a lock and went on without it. */
struct passed_lock {
    const struct sim_lock *lock;
    uint64_t count;
    struct passed_lock *next;
};

struct sim_thread {
    const struct lt_operation *operations;
    uint64_t operation_count;
    uint64_t next;    /* operation */
    struct cpu *cpu;  /* where the thread runs or ran last */
    int64_t left_ns;  /* of the computation that goes on */
    int64_t used_ns;  /* of the CPU, for the scheduler */
    int64_t since_ns; /* on the CPU */
    int64_t ran_ns;   /* when it left the CPU */
    int64_t slice_ns; /* used since it got the CPU */
    int is_other;
    int on_cpu;
    int got;          /* the lock that the thread waited for was handed over */
    int is_reader;    /* waits for an rwlock as a reader */
    int64_t waits_ns; /* when the wait began; 0: waits for nothing */
    struct sim_lock *waits_for;
    struct sim_thread *next_waiter;
    struct passed_lock *passed_by;
    uint64_t rounds;
    /* A thread is in one heap at most: that of the events, or the ready one of its CPU. */
    struct heap_entry entry;
};

struct simulation {
    const struct lt_program *program;
    struct sim_thread *threads;
    struct sim_lock *locks;
    struct cpu *cpus;
    uint64_t cpu_count;
    struct passed_lock *passed_locks; /* one for each operation that takes a lock */
    uint64_t passed_count;
    struct thread_heap events; /* by time: a thread sleeps, computes or wakes up until then */
    int64_t now_ns;
    int64_t tick_ns;
    uint64_t number;      /* events and ready threads so far */
    uint64_t steps;       /* operations so far */
    uint64_t ready_count; /* threads that are ready, on all CPUs */
    uint64_t cpu_ns;
    uint64_t random;
    int lacks_memory; /* a heap could not grow, so the outcome is worth nothing */
};

/* Returns a time or a number of units that can be added without an overflow. */
static inline int64_t limited(int64_t amount)
{
    return amount < 0 ? 0 : amount > MAX_AMOUNT ? MAX_AMOUNT : amount;
}

static inline int64_t least(int64_t first, int64_t other)
{
    return first < other ? first : other;
}

/* Lets the event of a thread come after some time. */
void event_later(struct simulation *simulation, struct sim_thread *thread, int64_t after_ns);

/* Gives a thread a CPU, or queues it for one. */
void cpu_wake(struct simulation *simulation, struct sim_thread *thread);

/* Goes on after the event of a thread that has a CPU. */
void cpu_slice_ends(struct simulation *simulation, struct sim_thread *thread);

/* Lets the CPUs without work pull threads, at the last tick before `next_ns`. */
void cpu_tick(struct simulation *simulation, int64_t next_ns);

/* Takes an operation of a lock. Returns whether the thread goes on; else it waits for the lock. */
int lock_passes(struct simulation *simulation, struct sim_thread *thread,
                const struct lt_operation *operation);

#endif
