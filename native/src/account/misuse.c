/* The table of misuses: calls that pthreads does not allow. */
#include "account/misuse.h"

#include <stdbool.h>

#include "base/clock.h"
#include "base/modes.h"
#include "base/tls.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "stack/capture.h"
#include "tables/held_list.h"
#include "tables/lock_table.h"
#include "tables/stack_table.h"

enum { FIRST = 16, ROBUST = 16 /* a bit of a mutex's __kind (glibc, nptl/pthreadP.h) */ };

void misuses_init(void)
{
    array_init(&lt_shm->misuses, sizeof(struct lt_misuse), FIRST);
}

static struct lt_misuse *find(const struct lt_misuse *like)
{
    uint32_t count = __atomic_load_n(&lt_shm->misuses.count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        struct lt_misuse *misuse = array_at(&lt_shm->misuses, i);
        if (misuse && __atomic_load_n(&misuse->kind, __ATOMIC_ACQUIRE) == like->kind &&
            misuse->lock == like->lock && misuse->stack == like->stack)
            return misuse;
    }
    return NULL;
}

/* Two threads that come at the same moment may each make an entry: a reader adds the two up. */
static void add(const struct lt_misuse *like)
{
    uint32_t index;
    __atomic_fetch_add(&lt_shm->misuses_changed, 1, __ATOMIC_RELEASE);
    struct lt_misuse *misuse = find(like);
    if (!misuse && lt_shm->misuses.count < LT_MISUSES &&
        (misuse = array_push(&lt_shm->misuses, &index))) {
        misuse->lock = like->lock;
        misuse->stack = like->stack;
        misuse->tid = like->tid;
        misuse->other = like->other;
        misuse->first = like->first;
        __atomic_store_n(&misuse->kind, like->kind, __ATOMIC_RELEASE);
    }
    if (misuse)
        __atomic_fetch_add(&misuse->count, 1, __ATOMIC_RELAXED);
}

void misuse_note(struct lt_thread *t, enum lt_misuse_kind kind, uint64_t key, uint32_t other,
                 const uintptr_t *frame)
{
    if ((lt_own.mode & LEVEL_MASK) < LT_LEVEL_CONTENDED)
        return;
    uint32_t mode = thread_busy(t);
    uint32_t lock = lock_id(key, 0);
    if (lock)
        add(&(struct lt_misuse){.kind = kind,
                                .lock = lock,
                                .stack = stack_capture(t, frame),
                                .tid = t->tid,
                                .other = other,
                                .first = lt_now()});
    thread_ready(t, mode);
}

/* Whether the dead thread kept the lock. A robust mutex is made for that. If another thread ever
 * released the lock of a thread that listed it, the list proves nothing. */
static bool is_kept(const struct lt_held *held)
{
    const struct lt_lock *lock = held->lock ? array_at(&lt_shm->locks, held->lock) : NULL;
    bool robust = held->key >> LT_KIND_SHIFT == LT_KIND_MUTEX && lock && lock->type & ROBUST;
    return lock && !robust && !lock->destroyed && !lock_is_distrusted(held->lock);
}

/* The next kept lock of the list from byte `*offset` on, or NULL. The list of an earlier epoch may
 * have missed releases: the library was dormant meanwhile. */
static const struct lt_held *next_kept(struct lt_thread *dead, uint32_t *offset)
{
    if (epoch_of(dead->mode) != epoch_of(current_mode()))
        return NULL;
    while (*offset < dead->held_top) {
        const struct lt_held *held = held_at(dead, *offset);
        *offset += (uint32_t)sizeof *held;
        if (is_kept(held))
            return held;
    }
    return NULL;
}

bool misuse_has_kept(struct lt_thread *dead)
{
    uint32_t offset = 0;
    return next_kept(dead, &offset) != NULL;
}

void misuse_note_kept(struct lt_thread *dead)
{
    uint32_t offset = 0;
    const struct lt_held *held;
    while ((held = next_kept(dead, &offset)))
        add(&(struct lt_misuse){.kind = LT_MISUSE_KEPT,
                                .lock = held->lock,
                                .stack = held->site ? stack_id(&held->site, 1) : 0,
                                .tid = dead->tid,
                                .first = lt_now()});
}
