/* The open calls of a thread: the slow ways, and the life of a thread's tree. */
#include "calls/call_stack.h"

#include <string.h>

#include "base/settings.h"
#include "base/sys.h"
#include "shm/arena.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "stack/capture.h"
#include "stack/handler_stack.h"

enum {
    FRAMES_FIRST = 32,
    RETRY = 1024,        /* calls between two attempts to find room for a tree */
    INHERITED_MAX = 256, /* open calls that a forked child begins with */
    RATE_NS = 2000000    /* the clock's rate is measured over so long */
};

__thread struct calls_state calls_state;

static uint64_t min_ticks;
static struct lt_calls *ended; /* the tree of all ended threads */

/* The open calls of the thread that forks. Copied before the fork: child and parent share the
 * frames, and the parent goes on. */
static struct {
    uint32_t in_use;
    uint32_t count;
    uint64_t ticks; /* ticks of the fork */
    struct traced call[INHERITED_MAX];
} inherited;

static uint64_t ticks_of_us(uint64_t us)
{
    if (lt_clock.kind == LT_CLOCK_MONOTONIC)
        return us * 1000;
    uint64_t from_ns = lt_clock_gettime_ns(CLOCK_MONOTONIC), from = lt_now(), ns;
    do
        ns = lt_clock_gettime_ns(CLOCK_MONOTONIC) - from_ns;
    while (ns < RATE_NS);
    return (uint64_t)((double)(lt_now() - from) / (double)ns * 1000 * (double)us);
}

void calls_init(void)
{
    ended = NULL;
    if (lt_settings.calls_min_us && !min_ticks)
        min_ticks = ticks_of_us(lt_settings.calls_min_us);
}

static struct lt_calls *calls_of(const struct lt_thread *t)
{
    return t->calls ? shm_ptr(t->calls) : NULL;
}

/* Takes the right to add to the tree. A child of clone(2) that shares the memory shares the
 * thread-local variables, too. Parent and child run at the same time. A handler that never returned
 * may have left this thread's own work. A program that has confined itself may be killed by the
 * system call. */
static bool growth_begin(struct call_tree *tree)
{
    if (shm_is_sealed())
        return true;
    uint32_t self = sys_gettid(), other = 0;
    return __atomic_compare_exchange_n(&tree->grower, &other, self, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED) ||
           other == self;
}

static void growth_end(struct call_tree *tree)
{
    __atomic_store_n(&tree->grower, 0, __ATOMIC_RELEASE);
}

/* ---- the frames ---- */

static uint32_t max_frames(void)
{
    return lt_settings.calls_depth + 1;
}

/* Moves the frames to a larger place. The former place stays as it is: a reader may look there. */
static bool frames_grow(struct lt_calls *calls)
{
    struct call_tree *tree = call_tree_of(calls);
    uint32_t count = calls->depth_room ? calls->depth_room * 2 : FRAMES_FIRST;
    if (count > max_frames())
        count = max_frames();
    if (count <= calls->depth_room)
        return false;
    uint64_t offset = shm_alloc(sizeof(struct lt_call_frame) * count);
    if (!offset)
        return false;
    struct lt_call_frame *frames = shm_ptr(offset);
    uint32_t depth = depth_of(calls);
    if (tree->frames)
        memcpy(frames, tree->frames, sizeof *frames * depth);
    for (uint32_t i = depth; i < count; i++) /* a handler finds a node in any frame */
        frames[i].node = (uint64_t)(uintptr_t)call_root(calls);
    __atomic_store_n(&tree->frames, frames, __ATOMIC_RELEASE);
    __atomic_store_n(&tree->depth_limit, count, __ATOMIC_RELEASE);
    __atomic_store_n(&calls->depth_room, count, __ATOMIC_RELEASE);
    __atomic_store_n(&calls->frames, offset, __ATOMIC_RELEASE);
    return true;
}

static struct lt_call_frame *upper_frame(struct lt_calls *calls)
{
    return &call_tree_of(calls)->frames[depth_of(calls) - 1];
}

static void close_all(struct lt_calls *calls, uint64_t now)
{
    for (uint32_t depth = depth_of(calls); depth > 1; depth--)
        call_pop(calls, depth, now);
    call_tree_of(calls)->skipped = 0;
    call_tree_of(calls)->depth_limit = calls->depth_room;
}

static struct lt_calls *calls_make(struct lt_thread *t)
{
    if (calls_state.refused && calls_state.refused++ % RETRY)
        return NULL;
    uint32_t mode = thread_busy(t);
    uint64_t offset = call_tree_new(LT_CALLS_NODES);
    struct lt_calls *calls = offset ? shm_ptr(offset) : NULL;
    if (calls && frames_grow(calls)) {
        struct lt_call_frame *root = call_tree_of(calls)->frames;
        root->frame = UINT64_MAX;
        calls->depth = 1;
        call_tree_of(calls)->min_ticks = min_ticks;
        __atomic_store_n(&t->calls, offset, __ATOMIC_RELEASE);
        calls_state.refused = 0;
    } else {
        calls = NULL;
        calls_state.refused++;
    }
    thread_ready(t, mode);
    return calls;
}

struct lt_calls *calls_begin(bool counts)
{
    uint32_t control = current_calls();
    if (!(control & LT_CALLS_ON) || dormant(current_mode()))
        return NULL;
    /* the frame of the hook is that of the caller */
    if (lt_own.busy &&
        !work_was_left(
            (const uintptr_t *)*FRAME())) { /* a signal handler interrupted the library */
        if (counts && calls_state.calls && !shm_is_of_parent())
            calls_state.calls->left_out++;
        return NULL;
    }
    struct lt_thread *t = watched(); /* a forked child makes its file */
    if (shm_is_of_parent())
        return NULL;
    struct lt_calls *calls = t ? calls_of(t) : NULL;
    if (t && !calls)
        calls = calls_make(t);
    if (!calls)
        return NULL;
    uint32_t epoch = epoch_of(t->mode);
    if (calls->control != control || calls->epoch != epoch) {
        /* the hooks missed the ends of these calls */
        calls_state.calls = calls;
        close_all(calls, calls->last);
        calls->control = control;
        calls->epoch = epoch;
    }
    calls_state.calls = calls;
    calls_state.control = control;
    return calls;
}

/* ---- the begin of a call ---- */

/* Whether the stack of the call above ended before this one began, as it does for a callee. */
static bool is_callee(const struct lt_call_frame *above, const struct traced *call)
{
    return above->frame >= call->return_at;
}

/* A function that the compiler put into another one has the same return address. A call that a
 * longjmp() left, and that was repeated, also has the same address of the hook. */
static bool is_inlined(const struct lt_call_frame *above, const struct traced *call)
{
    return above->frame + above->return_above == call->return_at && above->site == call->site &&
           above->hook_site != call->hook_site;
}

/* Ends the calls that the thread left by longjmp() or by an exception: the stack is above them
 * now. A signal handler may run on a stack of its own, which lies anywhere. */
static void end_left_calls(struct lt_calls *calls, const struct traced *call)
{
    stack_t stack = handler_stack();
    uint64_t now = lt_now();
    for (uint32_t depth = depth_of(calls); depth > 1; depth--) {
        const struct lt_call_frame *frame = &call_tree_of(calls)->frames[depth - 1];
        if (is_callee(frame, call) || is_inlined(frame, call) ||
            (stack.ss_size && frame->frame - (uintptr_t)stack.ss_sp >= stack.ss_size))
            break;
        call_pop(calls, depth, now);
    }
}

static void count_skipped(struct lt_calls *calls)
{
    if (call_tree_of(calls)->is_too_deep)
        calls->too_deep++;
    else
        calls->left_out++;
}

/* Neither the call nor its callees are counted. */
static void skip(struct lt_calls *calls, const struct traced *call, bool is_too_deep)
{
    struct call_tree *tree = call_tree_of(calls);
    tree->skipped = call->frame;
    tree->skipped_return = call->return_at;
    tree->skipped_function = call->function;
    tree->skipped_inlined = 0;
    tree->is_too_deep = is_too_deep;
    tree->depth_limit = 0;
    count_skipped(calls);
}

static void skip_no_more(struct lt_calls *calls)
{
    call_tree_of(calls)->skipped = 0;
    call_tree_of(calls)->depth_limit = calls->depth_room;
}

/* Whether the call is a callee of the one that is not counted. If not, that one has been left. */
static bool is_in_skipped(const struct call_tree *tree, const struct traced *call)
{
    return call->return_at <= tree->skipped || call->return_at == tree->skipped_return;
}

/* Whether the function is the one that is not counted: the compiler put it into itself. */
static bool is_part_of_skipped(const struct call_tree *tree, const struct traced *call)
{
    return call->function == tree->skipped_function && call->frame == tree->skipped;
}

void call_begin_slow(struct lt_calls *calls, const struct traced *call)
{
    struct call_tree *tree = call_tree_of(calls);
    const struct lt_call_frame *above = upper_frame(calls);
    if (tree->skipped && is_in_skipped(tree, call)) {
        tree->skipped_inlined += is_part_of_skipped(tree, call);
        count_skipped(calls);
        return;
    }
    if (tree->skipped)
        skip_no_more(calls);
    if (!is_callee(above, call) && !is_inlined(above, call))
        end_left_calls(calls, call);
    uint32_t mode = thread_busy(lt_own.block);
    uint32_t depth = depth_of(calls);
    bool fits = depth < limit_of(tree);
    struct lt_call *parent = node_of(&tree->frames[depth - 1]);
    struct lt_call *node = fits ? call_known(calls, parent, call->function) : NULL;
    if (!node && (fits || calls->depth_room < max_frames()) && growth_begin(tree)) {
        fits = fits || frames_grow(calls);
        node = fits ? call_child(calls, parent, call->function) : NULL;
        growth_end(tree);
    }
    thread_ready(lt_own.block, mode);
    if (node)
        call_push(calls, depth, node, call);
    else
        skip(calls, call, !fits && calls->depth_room == max_frames());
}

/* ---- the end of a call ---- */

/* Whether the call of `frame` ends. At the end of a function that made room on its stack, the stack
 * is lower than at its begin. */
static bool ends(const struct lt_call_frame *frame, const struct traced *call)
{
    if (node_of(frame)->function != call->function || frame->site != call->site)
        return false;
    if (!is_tail(call))
        return call->frame <= frame->frame;
    return frame->frame < call->frame &&
           (frame[-1].frame >= call->frame || frame[-1].frame < frame->frame /* another stack */);
}

/* Whether the outermost call that is not counted ends, or a part of it. */
static bool is_end_of_skipped(const struct call_tree *tree, const struct traced *call)
{
    return call->function == tree->skipped_function &&
           call->frame == (is_tail(call) ? tree->skipped_return : tree->skipped);
}

/* Whether the call that ends was not counted, though the call above it is. */
static bool was_skipped(struct lt_calls *calls, const struct traced *call)
{
    struct call_tree *tree = call_tree_of(calls);
    const struct lt_call_frame *above = upper_frame(calls);
    uint64_t outermost = tree->skipped;
    if (!outermost)
        return false;
    if (is_end_of_skipped(tree, call)) {
        if (!is_tail(call) && tree->skipped_inlined)
            tree->skipped_inlined--;
        else
            skip_no_more(calls);
        return true;
    }
    /* A part of the call above has the frame of that call, and a signal handler any frame. */
    bool is_above = outermost >= above->frame && ends(above, call);
    if (is_above || call->frame > outermost)
        skip_no_more(calls);
    return !is_above &&
           (call->frame <= outermost || (is_tail(call) && call->frame <= above->frame));
}

void call_end_slow(struct lt_calls *calls, const struct traced *call, uint64_t now)
{
    if (was_skipped(calls, call))
        return;
    uint32_t depth = depth_of(calls);
    for (uint32_t which = depth; which > 1; which--) {
        if (!ends(&call_tree_of(calls)->frames[which - 1], call))
            continue;
        for (; depth >= which; depth--)
            call_pop(calls, depth, now);
        return;
    }
    calls->unmatched++;
}

/* ---- the end of a thread ---- */

void calls_thread_ends(void)
{
    if (lt_own.block && calls_state.calls && !lt_own.busy)
        close_all(calls_state.calls, lt_now());
}

/* Ends the open calls of a dead thread. Nobody saw when they ended: no call has own time after the
 * thread's last call. */
static void end_with_dead_thread(struct lt_calls *calls)
{
    for (uint32_t depth = depth_of(calls); depth > 1; calls->depth = --depth) {
        struct lt_call_frame *frame = &call_tree_of(calls)->frames[depth - 1];
        struct lt_call *node = node_of(frame);
        uint64_t elapsed = calls->last > frame->begin ? calls->last - frame->begin : 0;
        node->ticks += elapsed;
        node->callee_ticks += frame->callee_ticks;
        frame[-1].callee_ticks += elapsed;
    }
}

void calls_retire(struct lt_thread *t)
{
    struct lt_calls *calls = calls_of(t);
    if (!calls)
        return;
    end_with_dead_thread(calls);
    if (!ended) {
        uint64_t offset = call_tree_new(LT_CALLS_NODES_ENDED);
        ended = offset ? shm_ptr(offset) : NULL;
        __atomic_store_n(&lt_shm->calls_ended, offset, __ATOMIC_RELEASE);
    }
    if (ended) {
        call_tree_merge(calls, ended);
        ended->last++; /* for readers: the tree has changed */
    }
    call_tree_clear(calls);
    struct lt_call_frame *root = call_tree_of(calls)->frames;
    root->callee_ticks = 0;
    growth_end(call_tree_of(calls)); /* a handler may have ended the thread in the middle */
    skip_no_more(calls);
    calls->control = 0;
}

void calls_unloaded(uint64_t start, uint64_t end)
{
    uint32_t count = __atomic_load_n(&lt_shm->threads.count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        const struct lt_thread *t = array_at(&lt_shm->threads, i);
        if (calls_of(t))
            call_tree_unloaded(calls_of(t), start, end);
    }
    if (ended)
        call_tree_unloaded(ended, start, end);
}

/* ---- fork ---- */

void calls_before_fork(void)
{
    struct lt_calls *calls = lt_own.block && !lt_own.busy ? calls_state.calls : NULL;
    calls_state.forks = calls && !__atomic_exchange_n(&inherited.in_use, 1, __ATOMIC_ACQUIRE);
    if (!calls_state.forks)
        return; /* another thread forks now: then the child begins without open calls */
    inherited.ticks = lt_now();
    inherited.count = 0;
    for (uint32_t i = 1; i < calls->depth && inherited.count < INHERITED_MAX; i++) {
        const struct lt_call_frame *frame = &call_tree_of(calls)->frames[i];
        inherited.call[inherited.count++] =
            (struct traced){node_of(frame)->function, frame->site, frame->hook_site, frame->frame,
                            frame->frame + frame->return_above};
    }
}

void calls_after_fork(void)
{
    if (calls_state.forks)
        __atomic_store_n(&inherited.in_use, 0, __ATOMIC_RELEASE);
    calls_state.forks = false;
}

void calls_inherit(void)
{
    uint32_t count = calls_state.forks ? inherited.count : 0;
    calls_state.forks = false;
    inherited.in_use = 0;
    struct lt_calls *calls = count ? calls_begin(false) : NULL;
    for (uint32_t i = 0; calls && i < count; i++) {
        call_begins(calls, &inherited.call[i]);
        upper_frame(calls)->begin = inherited.ticks;
    }
}
