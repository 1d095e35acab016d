/* The calling thread's block, and the uncontended path: what a lock and an unlock cost when
 * nobody waits. No clock, no atomic read-modify-write, no system call here. */
#ifndef LOCKTOP_THREAD_H
#define LOCKTOP_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "locks.h"
#include "locktop/abi.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE __attribute__((noinline))
#define EXPORT __attribute__((visibility("default")))

/* A contended acquisition or a wait, kept until it may be written. */
struct detail {
    uint32_t type; /* enum lt_record */
    uint32_t kind;
    uint32_t lock;
    uint32_t stack;
    uint32_t holder;
    uint64_t start, wait, hold;
    uint64_t site;
};

enum { DEFERRED_MAX = 4 };

#ifdef LT_NOP
enum { IS_NOP = 1 };
#else
enum { IS_NOP = 0 };
#endif

/* What only the thread itself needs, in lt_thread.own: pointers instead of offsets. */
struct local {
    struct lt_slot *slots;
    uint32_t slot_shift; /* 64 - log2(capacity) */
    uint32_t busy;       /* inside the library: a hook that is reached again calls through */
    struct lt_held *held;
    struct lt_site *sites;
    uint8_t *ring;
    struct stack_cache *stacks;
    void *(*start)(void *);
    void *argument;
    uint32_t next_free; /* index + 1 of the next free block */
    uint32_t index;     /* of this block */
    uint32_t deferred_count;
    struct detail deferred[DEFERRED_MAX];
};

/* Initial-exec: set up with the thread, so reading it is one instruction and never allocates. */
extern __thread struct lt_thread *lt_self;

/* Never NULL: before and after watching it is a page that says "dormant". */
extern struct lt_control *lt_control;

enum {
    LEVEL_MASK = 0xff,
    LEVEL_CHILD = 0xfe,        /* a forked child: its own file is made by the first hook */
    MODE_BUSY = 0xffffffff,    /* lt_thread.mode inside the library: equal to no real mode */
    MODE_CHILD = LEVEL_CHILD
};

static inline struct local *local_of(struct lt_thread *t)
{
    return (struct local *)t->own;
}

/* Registers the thread or brings it up to a new mode. NULL: call straight through. */
NOINLINE struct lt_thread *thread_enter(uint32_t mode);

/* The block to write to, or NULL: call straight through. The nop flavour always does: it is the
 * price of being interposed at all. */
static inline struct lt_thread *watched(void)
{
    if (IS_NOP)
        return NULL;
    struct lt_thread *t = lt_self;
    uint32_t mode = __atomic_load_n(&lt_control->mode, __ATOMIC_RELAXED);
    if (LIKELY(t && t->mode == mode))
        return t;
    if (LIKELY((mode & LEVEL_MASK) == LT_LEVEL_DORMANT))
        return NULL;
    return thread_enter(mode);
}

/* Between these two a hook that is reached again (by the unwinder, by a signal handler) calls
 * straight through. */
static inline void thread_busy(struct lt_thread *t)
{
    local_of(t)->busy++;
    t->mode = MODE_BUSY;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void thread_ready(struct lt_thread *t, uint32_t mode)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (--local_of(t)->busy == 0)
        t->mode = mode;
}

/* A block for a thread about to be created; NULL if there is none. */
struct lt_thread *thread_reserve(void);
void thread_release(struct lt_thread *t);

/* Makes the block the calling thread's own. */
void thread_adopt(struct lt_thread *t);

/* Forgets all threads, in a forked child. */
void threads_reset(void);
int threads_init(void);

/* Does another living thread list this lock as held? */
bool threads_hold(uint64_t key, const struct lt_thread *except);

/* ---- figures ---- */

NOINLINE struct lt_slot *slot_search(struct lt_thread *t, uint64_t key, uint32_t type);

static inline struct lt_slot *slot_of(struct lt_thread *t, uint64_t key, uint32_t type)
{
    struct local *local = local_of(t);
    struct lt_slot *slot = &local->slots[lock_hash(key) >> local->slot_shift];
    if (LIKELY(slot->key == key))
        return slot;
    return slot_search(t, key, type);
}

/* Adds to the thread's waits for (lock, stack). */
void site_add(struct lt_thread *t, uint32_t lock, uint32_t stack, uint64_t wait);

/* ---- held locks ---- */

NOINLINE bool held_grow(struct lt_thread *t);

static inline struct lt_held *held_push(struct lt_thread *t, uint64_t key, uint32_t lock,
                                        const void *site, uint64_t since, uint32_t flags)
{
    uint32_t count = t->held_count;
    if (UNLIKELY(count == t->held_capacity) && !held_grow(t))
        return NULL;
    struct lt_held *held = &local_of(t)->held[count];
    held->key = key;
    held->lock = lock;
    held->depth = 0;
    held->site = (uint64_t)(uintptr_t)site;
    held->since = since;
    held->flags = flags;
    /* Release: a reader that sees the count sees the entry. */
    __atomic_store_n(&t->held_count, count + 1, __ATOMIC_RELEASE);
    return held;
}

/* The topmost entry of a lock, or NULL. */
struct lt_held *held_find(struct lt_thread *t, uint64_t key);

/* ---- acquire and release ---- */

NOINLINE uint64_t sample_begin(struct lt_slot *slot);

/* The lock was free: counts it and lists it. */
static inline void acquired(struct lt_thread *t, uint64_t key, uint32_t type, const void *site,
                            uint32_t flags)
{
    struct lt_slot *slot = slot_of(t, key, type);
    slot->counts.acquisitions++;
    uint64_t since = 0;
    if (UNLIKELY(--slot->countdown == 0))
        since = sample_begin(slot);
    held_push(t, key, slot->lock, site, since, flags);
}

/* One release on its way: begun before the real unlock, ended after it. */
struct release {
    struct lt_held held; /* key 0: nothing to account for */
    uint64_t end;
    bool listed; /* it stood in the held list, and this was its last level */
};

NOINLINE void release_begin(struct lt_thread *t, uint64_t key, struct release *release);
NOINLINE void release_end(struct lt_thread *t, const struct release *release);

/* Most releases: the lock taken last, its hold not timed. True if that was all. */
static inline bool released(struct lt_thread *t, uint64_t key)
{
    uint32_t count = t->held_count;
    if (UNLIKELY(count == 0))
        return false;
    const struct lt_held *top = &local_of(t)->held[count - 1];
    if (UNLIKELY(top->key != key || top->since || top->depth || (top->flags & ~(uint32_t)LT_HELD_SHARED)))
        return false;
    __atomic_store_n(&t->held_count, count - 1, __ATOMIC_RELAXED);
    return true;
}

#endif
