/* The open calls of a thread. The begin and the end of a call change the call tree. */
#ifndef LOCKTOP_CALL_STACK_H
#define LOCKTOP_CALL_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/tls.h"
#include "calls/call_tree.h"
#include "locktop/abi.h"
#include "shm/segment.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* One call of a hook. */
struct traced {
    uint64_t function;
    uint64_t site;      /* return address of the traced function */
    uint64_t hook_site; /* return address of the hook */
    uint64_t frame;     /* where the hook's return address lies */
    uint64_t return_at; /* where the function's return address lies, at least */
};

/* The state of the calls of one thread. Each hook needs the first two fields. */
struct calls_state {
    struct lt_calls *calls;
    uint32_t control; /* the lt_control.calls for which `calls` is ready; 0 none */
    uint16_t refused; /* requests for a tree that found no room, modulo 2^16 */
    bool forks;       /* this thread has filled `inherited`, see call_stack.c */
};
extern __thread struct calls_state calls_state;

/* The calling thread has no block any more. */
static inline void calls_leave(void)
{
    calls_state.control = 0;
    calls_state.calls = NULL;
}

/* Prepares for the watch, with the settings. */
void calls_init(void);

/* The slow ways. */
NOINLINE struct lt_calls *calls_begin(bool counts);
NOINLINE void call_begin_slow(struct lt_calls *calls, const struct traced *call);
NOINLINE void call_end_slow(struct lt_calls *calls, const struct traced *call, uint64_t now);

/* The calling thread ends: its open calls end now. */
void calls_thread_ends(void);

/* A thread is dead: its tree is added to that of all ended threads, and becomes empty. */
void calls_retire(struct lt_thread *t);

/* Code was unloaded by dlclose(). */
void calls_unloaded(uint64_t start, uint64_t end);

/* Around a fork: the child begins with the open calls of the thread that forks. */
void calls_before_fork(void);
void calls_after_fork(void);
void calls_inherit(void);

/* The thread's tree, or NULL: the hook does nothing. `counts`: a call begins. A child that no fork
 * handler has seen must not write to the tree of its parent, which goes on. */
static ALWAYS_INLINE struct lt_calls *calls_ready(bool counts)
{
    if (LIKELY(lt_own.mode == current_mode() && calls_state.control == current_calls() &&
               lt_generation.is_own))
        return calls_state.calls;
    return calls_begin(counts);
}

/* Each hook reads the depth once, and the depth is never below 1. A process that shares this
 * thread's memory (clone(2)) may change the depth at any time. Then figures are wrong, but all
 * frames lie in their room. */
static inline uint32_t depth_of(const struct lt_calls *calls)
{
    return __atomic_load_n(&calls->depth, __ATOMIC_ACQUIRE);
}

/* Read before `frames`. In between, a handler or such a process may move the frames to a larger
 * place. */
static inline uint32_t limit_of(const struct call_tree *tree)
{
    return __atomic_load_n(&tree->depth_limit, __ATOMIC_ACQUIRE);
}

static inline struct lt_call *node_of(const struct lt_call_frame *frame)
{
    return (struct lt_call *)(uintptr_t)frame->node;
}

static ALWAYS_INLINE void frame_fill(struct lt_call_frame *frame, struct lt_call *node,
                                     const struct traced *call, uint64_t waited)
{
    frame->node = (uint64_t)(uintptr_t)node;
    frame->index = node->index;
    frame->frame = call->frame;
    frame->site = call->site;
    frame->hook_site = call->hook_site;
    frame->return_above = (uint32_t)(call->return_at - call->frame);
    frame->callee_ticks = 0;
    frame->waited = waited;
}

/* Adds a frame to `depth` others. A signal handler may come between any two of these steps. The
 * handler's calls end before this goes on. Before the depth rose, they were callees of the caller,
 * and may have overwritten the frame. Then this call begins after them. Later, they are callees of
 * this call. */
static ALWAYS_INLINE void call_push(struct lt_calls *calls, uint32_t depth, struct lt_call *node,
                                    const struct traced *call)
{
    struct lt_call_frame *frame = &call_tree_of(calls)->frames[depth];
    uint64_t waited = lt_own.block->waited, now = lt_now();
    frame->begin = now;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    frame_fill(frame, node, call, waited);
    __atomic_store_n(&calls->depth, depth + 1, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    frame = &call_tree_of(calls)->frames[depth]; /* the handler may have moved the frames */
    if (UNLIKELY(calls->last >= now) && (frame->begin != now || !frame->callee_ticks)) {
        frame_fill(frame, node, call, waited);
        frame->begin = now = calls->last;
    }
    calls->last = now;
    node->count++;
}

/* The calls of a handler that came before the depth fell are callees of the call that ended. */
static NOINLINE void call_pop_repair(struct lt_calls *calls, uint32_t depth, struct lt_call *node,
                                     uint64_t missing, bool is_short)
{
    call_tree_of(calls)->frames[depth - 2].callee_ticks += missing;
    if (is_short)
        return;
    node->ticks += missing;
    node->callee_ticks += missing;
}

/* Ends the call of the uppermost of `depth` frames, which is not the root's. A signal handler may
 * come between any two of these steps, and since `now`. */
static ALWAYS_INLINE void call_pop(struct lt_calls *calls, uint32_t depth, uint64_t now)
{
    const struct call_tree *tree = call_tree_of(calls);
    const struct lt_call_frame *frame = &tree->frames[depth - 1];
    struct lt_call *node = node_of(frame);
    uint64_t begin = frame->begin, callee_ticks;
    do {
        callee_ticks = frame->callee_ticks;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (UNLIKELY(calls->last > now))
            now = calls->last; /* when the handler's calls ended */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        frame = &tree->frames[depth - 1]; /* the handler may have moved the frames */
    } while (UNLIKELY(frame->callee_ticks != callee_ticks));
    uint64_t elapsed = now > begin ? now - begin : 0;
    bool is_short = elapsed < tree->min_ticks;
    if (UNLIKELY(is_short)) {
        node->short_count++;
    } else {
        node->ticks += elapsed;
        node->callee_ticks += callee_ticks;
        tree->frames[depth - 2].callee_ticks += elapsed;
        uint64_t waited = lt_own.block->waited - frame->waited;
        if (UNLIKELY(waited))
            node->wait_ticks += waited;
    }
    calls->last = now;
    __atomic_store_n(&calls->depth, depth - 1, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    frame = &tree->frames[depth - 1];
    if (UNLIKELY(frame->callee_ticks != callee_ticks && frame->begin == begin))
        call_pop_repair(calls, depth, node, frame->callee_ticks - callee_ticks, is_short);
}

static ALWAYS_INLINE void call_begins(struct lt_calls *calls, const struct traced *call)
{
    const struct call_tree *tree = call_tree_of(calls);
    uint32_t limit = limit_of(tree), depth = depth_of(calls);
    const struct lt_call_frame *above = &tree->frames[depth - 1];
    struct lt_call *node = (struct lt_call *)(uintptr_t)node_of(above)->latest;
    if (LIKELY(node->function == call->function && above->frame >= call->return_at &&
               depth < limit))
        call_push(calls, depth, node, call);
    else
        call_begin_slow(calls, call);
}

/* Whether the hook was reached by a jump at the end of the function. */
static inline bool is_tail(const struct traced *call)
{
    return call->hook_site == call->site;
}

/* The stack at the end of a function is as at its begin, or ends at its return address. */
static inline bool ends_as_begun(const struct lt_call_frame *frame, const struct traced *call)
{
    return frame->frame + (is_tail(call) ? frame->return_above : 0) == call->frame;
}

static ALWAYS_INLINE void call_ends(struct lt_calls *calls, const struct traced *call, uint64_t now)
{
    uint32_t depth = depth_of(calls);
    const struct lt_call_frame *frame = &call_tree_of(calls)->frames[depth - 1];
    if (LIKELY(node_of(frame)->function == call->function && frame->site == call->site &&
               ends_as_begun(frame, call)))
        call_pop(calls, depth, now);
    else
        call_end_slow(calls, call, now);
}

#pragma GCC visibility pop

#endif
