/* Captures the call stack of a hook's caller. Each processor has a file of its own for that. */
#ifndef LOCKTOP_CAPTURE_H
#define LOCKTOP_CAPTURE_H

#include <stdint.h>

#include "locktop/abi.h"

/* A hook's frame record: the caller's frame pointer, then the return address. x86-64 and aarch64
 * agree on that. */
#define FRAME() ((const uintptr_t *)__builtin_frame_address(0))

static inline const void *return_address(const uintptr_t *frame)
{
    return (const void *)frame[1];
}

/* To be called before the first capture: does what a capture must not do. */
void stack_capture_init(void);

/* The id of the stack that called a hook, 0 if there is no room for the stack. */
uint32_t stack_capture(struct lt_thread *t, const uintptr_t *frame);

/* The innermost frames of that stack are enough to find the caller of a wrapper. */
enum { INNER_FRAMES = 12 };

/* The id of a stack of these frames alone; 0 if there is no room. A process that would spend much
 * time in the unwinder gets the caller alone. */
uint32_t stack_capture_inner(struct lt_thread *t, const uintptr_t *frame);

#endif
