/* The table of thread blocks: a thread gets a block, and a dead thread leaves it. */
#include "runtime/thread.h"

#include <pthread.h>
#include <string.h>

#include "account/account_state.h"
#include "account/blame.h"
#include "account/deferred_events.h"
#include "account/misuse.h"
#include "account/wait.h"
#include "base/clock.h"
#include "base/lock_key.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/tls.h"
#include "calls/call_stack.h"
#include "order/happens_before.h"
#include "order/order_state.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "stack/stack_state.h"
#include "tables/held_list.h"
#include "tables/histogram.h"
#include "tables/lock_table.h"
#include "tables/tables_state.h"
#include "tables/thread_table.h"

enum {
    THREADS_FIRST = 16,
    COLLECT_FIRST = 64, /* blocks before the first search for dead threads */
    RESERVED = 8,       /* blocks reserved for threads that begin when there is no room */
    MAX_KEPT = 64       /* blocks of dead threads that keep their held lists */
};

/* The links of the free blocks, in lt_own.runtime. */
struct free_block {
    uint32_t next;  /* index + 1 of the next free block */
    uint32_t index; /* of this block */
};

_Static_assert(sizeof(struct free_block) <= sizeof(((struct lt_own *)0)->runtime), "too small");

static __thread bool registering;
static __thread bool unwatched;

/* Free blocks: a stack of (tag, index + 1). The tag makes a head that is used again differ. */
static uint64_t free_head;
static uint32_t collect_at = COLLECT_FIRST;
static uint32_t collecting;
static uint32_t reserved_used; /* of the reserved blocks, which are the first of all */
static uint32_t refused;       /* requests for a block that found no room */
static uint64_t registered;
static uint32_t (*read_tid)(void);

/* The blocks in state LT_THREAD_KEPT, for the one thread that collects; NULL: an unused slot. */
static struct lt_thread *kept[MAX_KEPT];
static uint32_t next_slot;

static struct free_block *free_block(struct lt_thread *t)
{
    return (struct free_block *)t->own.runtime;
}

/* The mode first: with it, no hook of a signal handler uses the rest. */
void thread_leave(void)
{
    lt_own = (struct own){.mode = MODE_NEVER};
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    calls_leave();
    stack_registering = 0;
}

void threads_reset(void)
{
    thread_leave();
    unwatched = false;
    registering = false;
    free_head = 0;
    collect_at = COLLECT_FIRST;
    collecting = 0;
    reserved_used = 0;
    refused = 0;
    memset(kept, 0, sizeof kept);
    next_slot = 0;
}

static void block_free(struct lt_thread *t)
{
    __atomic_store_n(&t->state, LT_THREAD_FREE, __ATOMIC_RELEASE);
    uint64_t head = __atomic_load_n(&free_head, __ATOMIC_ACQUIRE);
    uint64_t mine;
    do {
        free_block(t)->next = (uint32_t)head;
        mine = (((head >> 32) + 1) << 32) | (free_block(t)->index + 1);
    } while (!__atomic_compare_exchange_n(&free_head, &head, mine, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
}

static struct lt_thread *block_reuse(void)
{
    uint64_t head = __atomic_load_n(&free_head, __ATOMIC_ACQUIRE);
    struct lt_thread *t;
    uint64_t next;
    do {
        if ((uint32_t)head == 0)
            return NULL;
        t = array_at(&lt_shm->threads, (uint32_t)head - 1);
        next = (((head >> 32) + 1) << 32) | free_block(t)->next;
    } while (!__atomic_compare_exchange_n(&free_head, &head, next, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return t;
}

static bool block_furnish(struct lt_thread *t, uint32_t index)
{
    free_block(t)->index = index;
    tables_state(t)->held = t->held_inline;
    t->held_size = sizeof t->held_inline;
    t->held = array_offset(&lt_shm->threads, index) + offsetof(struct lt_thread, held_inline);
    return thread_table_init(t);
}

/* Clears a block. The block keeps only its tables, its ring, and the numbers that must go on. */
static void block_clear(struct lt_thread *t)
{
    thread_table_clear(t);
    histograms_clear(t);
    t->held_top = 0;
    t->held_lost = 0;
    t->wait.key = 0;
    memset(t->name, 0, sizeof t->name);
    t->tid = t->creator = 0;
    t->pthread = t->start = t->created_at = 0;
    events_forget(t);
}

static bool tid_is_dead(uint32_t tid)
{
    return sys_call3(SYS_tgkill, lt_shm->pid, tid, 0) == -3 /* ESRCH */;
}

static void retire(struct lt_thread *t)
{
    const struct tables_state *tables = tables_state(t);
    __atomic_store_n(&t->state, LT_THREAD_RETIRING, __ATOMIC_RELEASE);
    __atomic_fetch_add(&lt_shm->retire_seq, 1, __ATOMIC_ACQ_REL);
    for (uint32_t i = 0; i < t->counters_capacity; i++)
        if (tables->counters[i].key)
            lock_retire_counters(&tables->counters[i], waits_found(t, &tables->counters[i]));
    lock_retire_counters(&t->other, &t->other_waits);
    for (uint32_t i = 0; i < t->site_capacity; i++)
        if (tables->sites[i].count)
            lock_retire_site(&tables->sites[i]);
    histograms_retire(t);
    calls_retire(t);
    block_clear(t);
    block_free(t);
    __atomic_fetch_add(&lt_shm->retire_seq, 1, __ATOMIC_ACQ_REL);
}

static bool is_awaited(struct lt_thread *dead)
{
    for (uint32_t offset = 0; offset < dead->held_top; offset += (uint32_t)sizeof(struct lt_held)) {
        const struct lt_lock *lock = array_at(&lt_shm->locks, held_at(dead, offset)->lock);
        if (lock && blame_is_waited_for(lock))
            return true;
    }
    return false;
}

/* Finds a slot for one more block. If all are in use, the oldest block retires, but no block whose
 * locks are waited for. NULL: there is none. */
static struct lt_thread **slot_for_kept(void)
{
    for (uint32_t tries = 0; tries < MAX_KEPT; tries++) {
        struct lt_thread **slot = &kept[next_slot++ % MAX_KEPT];
        if (*slot && is_awaited(*slot))
            continue;
        if (*slot)
            retire(*slot);
        *slot = NULL;
        return slot;
    }
    return NULL;
}

/* Retires the kept blocks whose locks were destroyed, or released by other threads; the number of
 * blocks that stay. */
static uint32_t review_kept(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < MAX_KEPT; i++) {
        if (kept[i] && !misuse_has_kept(kept[i])) {
            retire(kept[i]);
            kept[i] = NULL;
        }
        count += kept[i] != NULL;
    }
    return count;
}

/* The block of a thread that ended with a lock keeps its held list. Later waiters of that lock wait
 * for the dead thread. The state changes before the misuse is noted: until then a reader counts the
 * misuse itself. */
static void bury(struct lt_thread *t)
{
    wait_forget(t);
    struct lt_thread **slot = misuse_has_kept(t) ? slot_for_kept() : NULL;
    if (slot) {
        t->wait.key = 0;
        *slot = t;
        __atomic_store_n(&t->state, LT_THREAD_KEPT, __ATOMIC_RELEASE);
        misuse_note_kept(t);
        return;
    }
    __atomic_store_n(&t->state, LT_THREAD_RETIRING, __ATOMIC_RELEASE);
    misuse_note_kept(t);
    retire(t);
}

/* Finds the blocks of dead threads by asking the kernel. The library has no thread-exit hook:
 * pthread keys are few, and thread-exit destructors allocate. So the blocks are collected when
 * their number has doubled. One thread collects at a time; the others go on without. */
static void collect_dead(void)
{
    if (shm_is_sealed() || __atomic_exchange_n(&collecting, 1, __ATOMIC_ACQUIRE))
        return;
    uint32_t count = __atomic_load_n(&lt_shm->threads.count, __ATOMIC_ACQUIRE);
    uint32_t living = review_kept();
    for (uint32_t i = 0; i < count; i++) {
        struct lt_thread *t = array_at(&lt_shm->threads, i);
        uint32_t state = __atomic_load_n(&t->state, __ATOMIC_ACQUIRE);
        if (state != LT_THREAD_LIVE && state != LT_THREAD_EXITING)
            continue;
        if (tid_is_dead(t->tid))
            bury(t);
        else
            living++;
    }
    __atomic_store_n(&collect_at, 2 * living + COLLECT_FIRST, __ATOMIC_RELAXED);
    __atomic_store_n(&collecting, 0, __ATOMIC_RELEASE);
}

static struct lt_thread *block_new(void)
{
    uint32_t index;
    struct lt_thread *t = array_push(&lt_shm->threads, &index);
    if (!t || !block_furnish(t, index))
        return NULL; /* the element stays in state 0, "free", but in no list */
    return t;
}

int threads_init(uint32_t (*read_tid_of_caller)(void))
{
    read_tid = read_tid_of_caller;
    array_init(&lt_shm->threads, sizeof(struct lt_thread), THREADS_FIRST);
    for (int i = 0; i < RESERVED; i++)
        if (!block_new())
            return -1;
    return 0;
}

static struct lt_thread *block_reserved(void)
{
    uint32_t used = __atomic_load_n(&reserved_used, __ATOMIC_RELAXED);
    do {
        if (used == RESERVED)
            return NULL;
    } while (!__atomic_compare_exchange_n(&reserved_used, &used, used + 1, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
    return array_at(&lt_shm->threads, used);
}

static struct lt_thread *block_of_dead(void)
{
    collect_dead();
    return block_reuse();
}

/* There is no room. The search for dead threads must not cost much here, for it may happen
 * often. */
static struct lt_thread *block_without_room(uint32_t count)
{
    uint32_t times = __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
    struct lt_thread *t = times % (1 + count / COLLECT_FIRST) == 0 ? block_of_dead() : NULL;
    return t ? t : block_reserved();
}

struct lt_thread *thread_reserve(void)
{
    if (!lt_shm || shm_is_of_parent())
        return NULL;
    uint32_t count = __atomic_load_n(&lt_shm->threads.count, __ATOMIC_RELAXED);
    struct lt_thread *t = block_reuse();
    if (!t && count >= __atomic_load_n(&collect_at, __ATOMIC_RELAXED))
        t = block_of_dead();
    if (!t)
        t = block_new();
    if (!t)
        t = block_without_room(count);
    if (!t) {
        __atomic_fetch_or(&lt_shm->notes, LT_NOTE_NO_THREAD_BLOCK, __ATOMIC_RELAXED);
        return NULL;
    }
    __atomic_store_n(&t->state, LT_THREAD_LAUNCHING, __ATOMIC_RELEASE);
    return t;
}

void thread_unwatch(void)
{
    thread_leave();
    unwatched = true;
}

void thread_release(struct lt_thread *t)
{
    block_free(t);
}

void thread_adopt(struct lt_thread *t)
{
    t->tid = read_tid ? read_tid() : sys_gettid();
    t->pthread = (uint64_t)pthread_self();
    t->started = lt_now();
    t->birth = __atomic_add_fetch(&registered, 1, __ATOMIC_RELAXED);
    t->mode = current_mode();
    random_begin(t, (uint32_t)(lock_hash(t->birth) >> 32));
    happens_before_begin(t);
    __atomic_store_n(&t->state, LT_THREAD_LIVE, __ATOMIC_RELEASE);
    lt_own.block = t;
    lt_own.tid = read_tid && lt_settings.order != ORDER_COOKIES ? t->tid : 0;
    lt_own.mode = dormant(t->mode) ? MODE_NEVER : t->mode;
}

struct lt_thread *thread_register(void)
{
    if (unwatched || registering)
        return NULL;
    registering = true;
    struct lt_thread *t = thread_reserve();
    if (t) {
        order_state(t)->creator = 0;
        thread_adopt(t);
    } else {
        unwatched = true;
        if (lt_shm && !shm_is_of_parent())
            __atomic_fetch_add(&lt_shm->threads_unwatched, 1, __ATOMIC_RELAXED);
    }
    registering = false;
    return t;
}
