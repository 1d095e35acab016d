/* Thread-local state: the thread's block, and the mode the thread last saw. Each layer keeps its
 * further state itself, in a part of lt_thread.own or in a thread-local variable. */
#ifndef LOCKTOP_TLS_H
#define LOCKTOP_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/modes.h"
#include "locktop/abi.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* The TLS model is initial-exec. The linker sets the variable up with the thread, so reading it is
 * one instruction and never allocates. */
struct own {
    struct lt_thread *block;
    uint32_t mode;        /* the mode the thread last saw; MODE_NEVER without a block */
    uint32_t tid;         /* for mutex_take(); 0: mutex_take() must not be used */
    uint32_t busy;        /* inside the library: a hook that is reached again calls through */
    uintptr_t busy_frame; /* of the function of the library that is at work */
};
extern __thread struct own lt_own;

/* The slow path of watched(): registers the thread, or brings it up to a new mode. NULL: the hook
 * calls straight through. The highest layer that knows how to do so sets it at the start
 * (runtime/thread_enter.h). Until then there are no blocks. */
extern struct lt_thread *(*lt_enter)(uint32_t mode);

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
    return LIKELY(t) ? t : dormant(mode) ? NULL : lt_enter(mode);
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
