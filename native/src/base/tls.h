/* Thread-local state: the thread's block, the mode the thread last saw, and its own pointers. */
#ifndef LOCKTOP_TLS_H
#define LOCKTOP_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/modes.h"
#include "locktop/abi.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* A contended acquisition or a wait, kept until the library may write its record. */
struct lock_event {
    uint32_t type; /* enum lt_record */
    uint32_t kind;
    uint32_t lock;
    uint32_t stack;
    uint32_t holder;
    uint64_t start, wait, hold;
    uint64_t site;
};

enum {
    DEFERRED_MAX = 4,
    TABLE_SIZES = 27, /* a table's capacity is 32 bits, and at least 32 entries */
    LINE_TABLE_SIZES = 7
};

/* The part that only the thread itself needs, in lt_thread.own: pointers instead of offsets. */
struct local {
    struct lt_lock_counters *counters;
    uint32_t counters_shift; /* 64 - log2(capacity) */
    uint32_t jitter;         /* state of the sampling's pseudo-random numbers */
    struct lt_held *held;
    struct lt_site *sites;
    uint8_t *ring;
    struct lt_long_wait *long_waits; /* NULL until the first */
    struct stack_cache *stacks;
    struct cached_stacks *inner_stacks;
    const uintptr_t *wait_frame;  /* frame of the hook that published the wait */
    struct lt_lock *wait_counted; /* the lock that counts the wait, or NULL */
    void *(*start)(void *);
    void *argument;
    uint32_t next_free; /* index + 1 of the next free block */
    uint32_t index;     /* of this block */
    uint32_t deferred_count;
    uint32_t held_before; /* bytes of the held list's room that lie before the list */
    struct lock_event deferred[DEFERRED_MAX];
    uint64_t counters_offsets
        [TABLE_SIZES]; /* offsets of the block's tables by size, see thread_table.c */
    uint64_t sites_offsets[TABLE_SIZES];
    struct {
        uint32_t *known; /* lock orders that need no further check, see lock_order.c */
        uint64_t seed;   /* differs for each thread and each of its segments */
        uint32_t *more;  /* a second and larger table, for a thread with many orders */
        uint32_t more_bits;
        uint32_t forgotten; /* of this segment: orders that found no room in a table */
        uint32_t skipped;
        uint32_t segment;    /* see struct lt_life */
        uint32_t life;       /* index + 1 in lt_header.lives, 0 none */
        uint32_t creator;    /* birth, 0 unknown */
        uint32_t created_in; /* the creator's segment */
    } order;
    struct lt_histogram_line *lines;
    uint64_t lines_offsets[LINE_TABLE_SIZES]; /* of its tables by size, see histogram.c */
    uint32_t lines_refused;                   /* requests until the next attempt to find room */
};

/* For sampling: xorshift32 (Marsaglia 2003). */
static inline uint32_t random_next(struct local *local)
{
    uint32_t x = local->jitter;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return local->jitter = x;
}

/* The TLS model is initial-exec. The linker sets the variable up with the thread, so reading it is
 * one instruction and never allocates. */
struct own {
    struct lt_thread *block;
    uint32_t mode;          /* the mode the thread last saw; MODE_NEVER without a block */
    uint32_t tid;           /* for mutex_take(); 0: mutex_take() must not be used */
    uint32_t busy;          /* inside the library: a hook that is reached again calls through */
    uint32_t calls_control; /* the lt_control.calls for which `calls` is ready; 0 none */
    struct lt_calls *calls;
    uintptr_t busy_frame; /* of the function of the library that is at work */
    uint32_t registering; /* calls of libgcc that the thread is in, see unwind_tables.c */
};
extern __thread struct own lt_own;

static inline struct local *local_of(struct lt_thread *t)
{
    return (struct local *)t->own;
}

/* The slow path of watched(): registers the thread, or brings it up to a new mode. NULL: the hook
 * calls straight through. This is the one function that lower folders call upwards. The linker
 * binds it to runtime/thread_enter.c, so that no lower folder knows how threads register. */
NOINLINE struct lt_thread *thread_enter(uint32_t mode);

/* The calling thread's block if the thread may write to it, else NULL. Read once: a signal handler
 * may fork in the middle of a hook, and the child has no block. */
static inline struct lt_thread *ready(uint32_t mode)
{
    return LIKELY(lt_own.mode == mode) ? __atomic_load_n(&lt_own.block, __ATOMIC_RELAXED) : NULL;
}

/* The block to write to, or NULL: the hook calls straight through. */
static inline struct lt_thread *watched(void)
{
    if (IS_NOP)
        return NULL;
    uint32_t mode = current_mode();
    struct lt_thread *t = ready(mode);
    return LIKELY(t) ? t : dormant(mode) ? NULL : thread_enter(mode);
}

/* Between these two a hook that is reached again (by the unwinder, by a signal handler) calls
 * straight through. The first returns the mode that the second restores. */
static inline uint32_t thread_busy(struct lt_thread *t)
{
    uint32_t mode = lt_own.mode;
    (void)t;
    if (!lt_own.busy++)
        lt_own.busy_frame = (uintptr_t)__builtin_frame_address(0);
    lt_own.mode = MODE_NEVER;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return mode;
}

static inline void thread_ready(struct lt_thread *t, uint32_t mode)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    (void)t;
    if (LIKELY(lt_own.busy)) /* not if work_was_left() was wrong: a handler may change stacks */
        lt_own.busy--;
    lt_own.mode = mode;
}

#pragma GCC visibility pop

#endif
