/* Call stacks: taken on the contended path, kept once each, known again at the price of a
 * comparison. */
#ifndef LOCKTOP_STACK_H
#define LOCKTOP_STACK_H

#include "runtime/thread.h"
#include "shm/segment.h"

/* A hook's frame record: the caller's frame pointer, then the address it returns to. x86-64 and
 * aarch64 agree on that. */
#define FRAME() ((const uintptr_t *)__builtin_frame_address(0))

static inline const void *return_address(const uintptr_t *frame)
{
    return (const void *)frame[1];
}

/* Makes the table; 0 on success, -1 if there is no room. */
int stacks_init(void);

/* Before the first capture: what it may not do later. */
void stack_capture_init(void);

/* The id of the stack that called a hook, 0 if there is no room for it. */
uint32_t stack_capture(struct lt_thread *t, const uintptr_t *frame);

static inline struct lt_stack *stack_at(uint32_t id)
{
    return shm_ptr((uint64_t)id * LT_STACK_UNIT);
}

static inline const uint64_t *stack_frames(const struct lt_stack *stack)
{
    return (const uint64_t *)(stack + 1);
}

/* A library's code is gone from these addresses. Its stacks are marked, so that they are neither found
 * again nor taken for those of what comes there next. */
void stacks_unloaded(uint64_t start, uint64_t end);

/* The id of these return addresses, entered if they are new; 0 if there is no room. `depth` may be
 * marked LT_STACK_CUT. */
uint32_t stack_id(const uint64_t *frames, uint32_t depth);

#endif
