/* The locks of a simulation, which behave as those of glibc.
 *
 * - A mutex that is released is free. The first waiter is woken and tries again, so another thread
 *   may take the mutex before it. Such a thread knows of no waiters. So its release wakes a thread
 *   only if a waiter tried meanwhile (nptl/lowlevellock.c, lll_lock_wait).
 * - An rwlock prefers readers: a reader gets the lock while other readers have it. A writer, or the
 *   last reader, hands the lock over to waiters (nptl/pthread_rwlock_common.c).
 * - A post adds a unit, and the woken thread tries to take one (nptl/sem_waitcommon.c). */
#include "simulation.h"

#include <stddef.h>

enum { MAX_CHAIN = 64 }; /* owners that are followed from one to the next */

/* Returns one of the times that a wake-up takes. The generator is splitmix64 of Sebastiano Vigna
 * (prng.di.unimi.it/splitmix64.c, in the public domain). */
static int64_t random_wake_ns(struct simulation *simulation)
{
    const struct lt_program *program = simulation->program;
    uint64_t bits = simulation->random += 0x9e3779b97f4a7c15u;

    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    bits ^= bits >> 31;
    return program->wake_count ? limited(program->wakes_ns[bits % program->wake_count]) : 0;
}

static void append(struct sim_lock *lock, struct sim_thread *thread)
{
    if (lock->last)
        lock->last->next_waiter = thread;
    else
        lock->first = thread;
    lock->last = thread;
    thread->next_waiter = NULL;
    lock->waiting++;
    lock->waiting_readers += thread->is_reader != 0;
}

/* Takes the thread behind `before` out of those that wait, the first one if that is NULL. */
static struct sim_thread *take_waiter(struct sim_lock *lock, struct sim_thread *before)
{
    struct sim_thread **link = before ? &before->next_waiter : &lock->first;
    struct sim_thread *thread = *link;

    *link = thread->next_waiter;
    if (lock->last == thread)
        lock->last = before;
    lock->waiting--;
    lock->waiting_readers -= thread->is_reader != 0;
    return thread;
}

/* Wakes a thread that waited: it tries again, or has the lock already. */
static void wake(struct simulation *simulation, struct sim_thread *thread, int got)
{
    if (got)
        thread->got = 1;
    thread->waits_for = NULL;
    event_later(simulation, thread, random_wake_ns(simulation));
}

static void wake_first(struct simulation *simulation, struct sim_lock *lock)
{
    if (lock->first)
        wake(simulation, take_waiter(lock, NULL), 0);
}

static void post(struct simulation *simulation, struct sim_lock *lock, int64_t units)
{
    lock->units = limited(lock->units + units);
    while (units-- > 0 && lock->first)
        wake_first(simulation, lock);
}

/* Hands a free rwlock over: to all readers that wait, else to the first writer. */
static void pass_on(struct simulation *simulation, struct sim_lock *lock)
{
    struct sim_thread *before = NULL, *thread = lock->first;

    if (!thread)
        return;
    lock->is_free = 0;
    if (!lock->waiting_readers)
        wake(simulation, take_waiter(lock, NULL), 1);
    lock->readers += lock->waiting_readers;
    while (lock->waiting_readers) {
        struct sim_thread *next = thread->next_waiter;

        if (thread->is_reader)
            wake(simulation, take_waiter(lock, before), 1);
        else
            before = thread;
        thread = next;
    }
}

static void release(struct simulation *simulation, struct sim_lock *lock)
{
    lock->owner = NULL;
    if (lock->readers)
        lock->readers--;
    lock->is_free = !lock->readers;
    if (lock->type == LT_MUTEX && lock->has_sleepers)
        wake_first(simulation, lock);
    else if (lock->type != LT_MUTEX && lock->is_free)
        pass_on(simulation, lock);
}

static int meets(struct simulation *simulation, struct sim_lock *lock)
{
    if ((int64_t)lock->waiting + 1 < lock->threads)
        return 0;
    while (lock->first)
        wake(simulation, take_waiter(lock, NULL), 1);
    return 1;
}

static int gets(struct simulation *simulation, int64_t type, struct sim_lock *lock)
{
    switch (type) {
    case LT_MEET: return meets(simulation, lock);
    case LT_WAIT:
        if (!lock->units)
            return 0;
        lock->units--;
        return 1;
    case LT_SHARE:
        if (!lock->is_free && !lock->readers)
            return 0;
        lock->is_free = 0;
        lock->readers++;
        return 1;
    default: /* LT_TAKE */
        if (!lock->is_free)
            return 0;
        lock->is_free = 0;
        return 1;
    }
}

/* Whether a thread would wait for itself. The recorded program did not stop. So such a call only
 * tried to get the lock (trylock), and the thread goes on without the lock. */
static int closes_cycle(const struct sim_thread *thread, const struct sim_lock *lock)
{
    const struct sim_thread *owner = lock->owner;

    for (int i = 0; i < MAX_CHAIN; i++) {
        if (!owner || owner == thread)
            return owner == thread;
        owner = owner->waits_for ? owner->waits_for->owner : NULL;
    }
    return 0;
}

static struct passed_lock *passed_by(const struct sim_thread *thread, const struct sim_lock *lock)
{
    struct passed_lock *passed = thread->passed_by;

    while (passed && passed->lock != lock)
        passed = passed->next;
    return passed;
}

/* Notes that a thread goes on without a lock. There is one entry for each operation that takes a
 * lock, so they never run out. */
static void pass_by(struct simulation *simulation, struct sim_thread *thread,
                    const struct sim_lock *lock)
{
    struct passed_lock *passed = passed_by(thread, lock);

    if (!passed) {
        passed = &simulation->passed_locks[simulation->passed_count++];
        *passed = (struct passed_lock){lock, 0, thread->passed_by};
        thread->passed_by = passed;
    }
    passed->count++;
}

static void has_got(const struct simulation *simulation, struct sim_thread *thread, int64_t type,
                    struct sim_lock *lock)
{
    thread->got = 0;
    if (type == LT_TAKE) {
        lock->owner = thread;
        lock->has_sleepers = thread->waits_ns != 0;
    }
    if (thread->waits_ns) {
        lock->wait_ns += (uint64_t)(simulation->now_ns - thread->waits_ns);
        thread->waits_ns = 0;
    }
}

static void begin_wait(const struct simulation *simulation, struct sim_thread *thread, int64_t type,
                       struct sim_lock *lock)
{
    if (!thread->waits_ns)
        thread->waits_ns = simulation->now_ns ? simulation->now_ns : 1;
    thread->waits_for = lock;
    thread->is_reader = type == LT_SHARE;
    lock->has_sleepers = 1;
    append(lock, thread);
}

int lock_passes(struct simulation *simulation, struct sim_thread *thread,
                const struct lt_operation *operation)
{
    struct sim_lock *lock = &simulation->locks[operation->lock];
    struct passed_lock *passed;

    switch (operation->type) {
    case LT_RELEASE:
        passed = passed_by(thread, lock);
        if (passed && passed->count)
            passed->count--;
        else
            release(simulation, lock);
        return 1;
    case LT_POST: post(simulation, lock, limited(operation->amount)); return 1;
    default: break;
    }
    if (thread->got || gets(simulation, operation->type, lock)) {
        has_got(simulation, thread, operation->type, lock);
        return 1;
    }
    if (operation->type == LT_TAKE && closes_cycle(thread, lock)) {
        pass_by(simulation, thread, lock);
        return 1;
    }
    begin_wait(simulation, thread, operation->type, lock);
    return 0;
}
