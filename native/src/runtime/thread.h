/* The calling thread's block: whether it may be written to, and how threads get and leave theirs. */
#ifndef LOCKTOP_THREAD_H
#define LOCKTOP_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "locktop/abi.h"
#include "tables/lock_table.h"

#pragma GCC visibility push(hidden) /* for a direct access: declarations need it said */

#define LIKELY(x)     __builtin_expect(!!(x), 1)
#define UNLIKELY(x)   __builtin_expect(!!(x), 0)
#define NOINLINE      __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define EXPORT        __attribute__((visibility("default")))

/* The hook of `name`, above it in the same file, under a second name too. */
#if __has_attribute(copy)
#define ALSO(name) EXPORT extern __typeof(name) __##name __attribute__((alias(#name), copy(name)))
#else
#define ALSO(name) EXPORT extern __typeof(name) __##name __attribute__((alias(#name)))
#endif

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

enum {
    DEFERRED_MAX = 4,
    TABLE_SIZES = 27 /* a table's capacity is 32 bits, and at least 32 entries */
};

#ifdef LT_NOP
enum { IS_NOP = 1 };
#else
enum { IS_NOP = 0 };
#endif

/* What only the thread itself needs, in lt_thread.own: pointers instead of offsets. */
struct local {
    struct lt_slot *slots;
    uint32_t slot_shift; /* 64 - log2(capacity) */
    uint32_t jitter;     /* state of the sampling's pseudo-random numbers */
    struct lt_held *held;
    struct lt_site *sites;
    uint8_t *ring;
    struct stack_cache *stacks;
    const uintptr_t *wait_frame;  /* of the hook that published the wait */
    struct lt_lock *wait_counted; /* the lock that counts it, or NULL */
    void *(*start)(void *);
    void *argument;
    uint32_t next_free; /* index + 1 of the next free block */
    uint32_t index;     /* of this block */
    uint32_t deferred_count;
    uint32_t held_before; /* bytes of the held list's room that lie before the list */
    struct detail deferred[DEFERRED_MAX];
    uint64_t slot_places[TABLE_SIZES]; /* where the block's tables of each size lie, see tables.c */
    uint64_t site_places[TABLE_SIZES];
    struct {
        uint32_t *known; /* orders that need no further look, see order.c */
        uint64_t seed;   /* differs for each thread and each of its segments */
        uint32_t skipped;
        uint32_t segment;    /* see struct lt_life */
        uint32_t life;       /* index + 1 in lt_header.lives, 0 none */
        uint32_t creator;    /* birth, 0 unknown */
        uint32_t created_in; /* its segment */
    } order;
};

/* What the thread knows of itself. Initial-exec: set up with the thread, so reading it is one
 * instruction and never allocates. */
struct own {
    struct lt_thread *block;
    uint32_t mode; /* that it last saw; without a block MODE_NEVER */
    uint32_t tid;  /* for mutex_take(); 0: not to be used */
    uint32_t busy; /* inside the library: a hook that is reached again calls through */
};
extern __thread struct own lt_own;

/* The control page, at an address that the linker knows: the file's page is mapped over this one,
 * which says "dormant" before and after. */
extern union control_page {
    struct lt_control page;
    uint8_t room[LT_PAGE];
} lt_control;

enum {
    LEVEL_MASK = 0xff,
    LEVEL_CHILD = 0xfe,      /* a forked child: its own file is made by the first hook */
    MODE_NEVER = 0xffffffff, /* equal to no real mode: no block, or inside the library */
    MODE_CHILD = LEVEL_CHILD
};

static inline struct local *local_of(struct lt_thread *t)
{
    return (struct local *)t->own;
}

/* Registers the thread or brings it up to a new mode. NULL: call straight through. */
NOINLINE struct lt_thread *thread_enter(uint32_t mode);

/* The calling thread's block if it is ready to be written to, else NULL. Read once: a signal handler
 * may fork in the middle of a hook, and the child has no block. */
static inline struct lt_thread *ready(uint32_t mode)
{
    return LIKELY(lt_own.mode == mode) ? __atomic_load_n(&lt_own.block, __ATOMIC_RELAXED) : NULL;
}

static inline uint32_t current_mode(void)
{
    return __atomic_load_n(&lt_control.page.mode, __ATOMIC_RELAXED);
}

static inline uint32_t epoch_of(uint32_t mode)
{
    return mode >> 8;
}

static inline bool dormant(uint32_t mode)
{
    return (mode & LEVEL_MASK) == LT_LEVEL_DORMANT;
}

/* The hook has nothing to do. The nop flavour never has: it is the price of being interposed at
 * all. */
static inline bool at_rest(uint32_t mode)
{
    return IS_NOP || dormant(mode);
}

/* The block to write to, or NULL: call straight through. */
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
    lt_own.busy++;
    lt_own.mode = MODE_NEVER;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return mode;
}

static inline void thread_ready(struct lt_thread *t, uint32_t mode)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    (void)t;
    lt_own.busy--;
    lt_own.mode = mode;
}

/* A block for a thread about to be created; NULL if there is none. */
struct lt_thread *thread_reserve(void);
void thread_release(struct lt_thread *t);

/* Makes the block the calling thread's own. */
void thread_adopt(struct lt_thread *t);

/* The calling thread is not watched from now on. */
void thread_unwatch(void);

/* Forgets all threads, in a forked child. */
void threads_reset(void);

/* `take_free`: may hooks use mutex_take()? */
int threads_init(bool take_free);

/* Does another living thread list this lock as held? */
bool threads_hold(uint64_t key, const struct lt_thread *except);

#pragma GCC visibility pop

#endif
