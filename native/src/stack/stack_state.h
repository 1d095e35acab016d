/* The state of the captures of stacks for one thread. */
#ifndef LOCKTOP_STACK_STATE_H
#define LOCKTOP_STACK_STATE_H

#include <stdint.h>

#include "locktop/abi.h"

/* In lt_own.stack: memory whose layout the capture of each processor knows. NULL until its first
 * use. */
struct stack_state {
    void *cache;
    void *inner_cache; /* of stack_capture_inner() */
};

_Static_assert(sizeof(struct stack_state) <= sizeof(((struct lt_own *)0)->stack), "too small");

static inline struct stack_state *stack_state(struct lt_thread *t)
{
    return (struct stack_state *)t->own.stack;
}

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* Calls of libgcc that the thread is in, each of which changes what the unwinder reads. */
extern __thread uint32_t stack_registering;

#pragma GCC visibility pop

#endif
