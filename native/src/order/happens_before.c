/* The table of lives: which thread created and joined which. */
#include "order/happens_before.h"

#include <stdbool.h>
#include <string.h>

#include "base/lock_key.h"
#include "base/tls.h"
#include "order/order_state.h"
#include "shm/array.h"
#include "shm/segment.h"

enum { LIVES_FIRST = 16, LIVES_MAX = 1 << 14, BUCKET_BITS = 12 };
/* entries searched: threads that end and begin with one pthread_t make chains long */
enum { CHAIN_MAX = 256 };

static bool is_used;
static uint32_t bucket[1u << BUCKET_BITS]; /* index + 1 of the newest life */

void happens_before_init(void)
{
    array_init(&lt_shm->lives, sizeof(struct lt_life), LIVES_FIRST);
    if (is_used)
        memset(bucket, 0, sizeof bucket); /* a forked child */
    is_used = false;
}

static uint32_t *bucket_of(uint64_t pthread)
{
    return &bucket[lock_hash(pthread) >> (64 - BUCKET_BITS)];
}

void happens_before_renew_seed(struct lt_thread *t)
{
    struct order_state *state = order_state(t);
    state->seed = lock_hash(lock_hash(t->birth << 32 | state->segment) ^ t->mode);
    state->forgotten = 0;
}

static void segment_begin(struct lt_thread *t, uint32_t segment)
{
    order_state(t)->segment = segment;
    happens_before_renew_seed(t);
}

void happens_before_begin(struct lt_thread *t)
{
    order_state(t)->life = 0;
    segment_begin(t, 0);
}

static void note_change(void)
{
    __atomic_fetch_add(&lt_shm->orders_changed, 1, __ATOMIC_RELEASE);
}

static void chain(struct lt_life *life, uint32_t index)
{
    uint32_t *head = bucket_of(life->pthread);
    uint32_t next = __atomic_load_n(head, __ATOMIC_ACQUIRE);
    do {
        life->next = next;
    } while (!__atomic_compare_exchange_n(head, &next, index + 1, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
}

/* Beyond LIVES_MAX threads, the order of two threads in time is not known. */
static void keep(struct lt_thread *t)
{
    struct order_state *state = order_state(t);
    if (__atomic_load_n(&lt_shm->lives.count, __ATOMIC_RELAXED) >= LIVES_MAX)
        return;
    uint32_t index;
    struct lt_life *life = array_push(&lt_shm->lives, &index);
    if (!life)
        return;
    is_used = true;
    state->life = index + 1;
    life->pthread = t->pthread;
    life->tid = t->tid;
    life->creator = state->creator;
    life->created_in = state->created_in;
    __atomic_store_n(&life->birth, (uint32_t)t->birth, __ATOMIC_RELEASE);
    chain(life, index);
    note_change();
}

void happens_before_keep(struct lt_thread *t)
{
    if (order_state(t)->life || shm_is_of_parent())
        return;
    uint32_t mode = thread_busy(t);
    keep(t);
    thread_ready(t, mode);
}

void happens_before_creates(struct lt_thread *t, struct lt_thread *created)
{
    struct order_state *state = order_state(created);
    happens_before_keep(t);
    state->creator = (uint32_t)t->birth;
    state->created_in = order_state(t)->segment;
    segment_begin(t, order_state(t)->segment + 1);
}

/* The newest life of a pthread_t is the thread's. The others have ended, or libc would not use the
 * pthread_t again. */
struct lt_life *happens_before_find(pthread_t thread)
{
    uint32_t next = __atomic_load_n(bucket_of((uint64_t)thread), __ATOMIC_ACQUIRE);
    for (int i = 0; next && i < CHAIN_MAX; i++) {
        struct lt_life *life = array_at(&lt_shm->lives, next - 1);
        if (life->pthread == (uint64_t)thread)
            return __atomic_load_n(&life->joiner, __ATOMIC_ACQUIRE) ? NULL : life;
        next = life->next;
    }
    return NULL;
}

/* A thread without a life entry took no locks in an order of interest, so its end tells nothing. */
void happens_before_joins(pthread_t thread, struct lt_life *life)
{
    struct lt_thread *t = watched();
    if (!t || shm_is_of_parent())
        return;
    if (!life)
        life = happens_before_find(thread);
    if (!life)
        return;
    happens_before_keep(t);
    segment_begin(t, order_state(t)->segment + 1);
    life->joined_in = order_state(t)->segment;
    __atomic_store_n(&life->joiner, (uint32_t)t->birth, __ATOMIC_RELEASE);
    note_change();
}
