/* A life of a lock begins or ends: the lock table, the names and the lock orders follow. */
#include "order/lock_life.h"

#include <stdbool.h>

#include "base/lock_key.h"
#include "base/tls.h"
#include "order/lock_order.h"
#include "stack/capture.h"
#include "tables/held_list.h"
#include "tables/init_sites.h"
#include "tables/lock_names.h"
#include "tables/lock_table.h"
#include "tables/stack_table.h"

/* Held lists that were stale in the lock's last life may still be stale. No list names a
 * semaphore, and a thread that posts it unheld is noted anew in each life. */
static void trust_again(struct lt_lock *lock, uint64_t key)
{
    if (__atomic_load_n(&lock->foreign_releases, __ATOMIC_RELAXED) &&
        (has_lives(key) || !held_by_others(key, NULL)))
        __atomic_store_n(&lock->foreign_releases, 0, __ATOMIC_RELEASE);
}

/* The stack of an initialisation. A wrapper may have made the call, so one frame is too little.
 * A thread that holds locks may be inside an allocator, which the unwinder may call. */
static uint32_t stack_of_init(const uintptr_t *frame)
{
    struct lt_thread *t = frame ? watched() : NULL;
    if (!t)
        return 0;
    uint32_t mode = thread_busy(t);
    uint32_t stack = (mode & LEVEL_MASK) < LT_LEVEL_CONTENDED || t->held_top
                         ? stack_id_of_site(return_address(frame))
                         : stack_capture_inner(t, frame);
    thread_ready(t, mode);
    return stack;
}

void lock_life_begins(uint64_t key, uint32_t type, const uintptr_t *frame)
{
    lock_name_forget(key);
    uint32_t stack = stack_of_init(frame);
    struct lt_lock *lock = lock_find(key);
    if (!lock) {
        init_site_note(key, type, stack ? stack_at(stack) : NULL, 0);
        return;
    }
    __atomic_store_n(&lock->made_at, stack, __ATOMIC_RELAXED);
    if (type)
        __atomic_store_n(&lock->type, type, __ATOMIC_RELAXED);
    /* In this order: a child that reads this file sees that the former life has ended. See
     * tables/inherited_semaphores.c. */
    uint32_t generation = __atomic_add_fetch(&lock->generation, 1, __ATOMIC_ACQ_REL);
    trust_again(lock, key);
    if (has_lives(key))
        init_site_note(key, type, stack ? stack_at(stack) : NULL, generation);
    __atomic_store_n(&lock->destroyed, 0, __ATOMIC_RELEASE);
    order_life_changed(key);
}

void lock_life_ends(uint64_t key)
{
    lock_name_forget(key);
    struct lt_lock *lock = lock_find(key);
    if (!lock || has_lives(key))
        init_site_forget(key);
    if (!lock)
        return;
    __atomic_store_n(&lock->destroyed, 1, __ATOMIC_RELEASE);
    order_life_changed(key);
}
